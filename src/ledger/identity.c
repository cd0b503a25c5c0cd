/* SPDX-License-Identifier: MIT */
/* Reading of identities from /proc; see identity.h. */
#include "ledger/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct process_status {
	char state;
	unsigned long threads;
	uint64_t start;
};

/* /proc/PID/stat; raw system calls, since the wrappers are cancellation points. */
static bool status_read(pid_t pid, struct process_status *ret)
{
	char path[40], text[1024], *at;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	at = strrchr(text, ')'); /* the name before it may hold anything */
	if (!at || at[1] != ' ')
		return false;
	ret->state = at[2];
	at += 3;
	for (int field = 4; field <= 22; field++) {
		unsigned long long value = strtoull(at, &at, 10);

		if (field == 20)
			ret->threads = (unsigned long)value;
		if (field == 22)
			ret->start = value;
	}
	return *at == ' ';
}

uint64_t identity_start(pid_t pid)
{
	struct process_status status;

	return status_read(pid, &status) ? status.start : 0;
}

static uint64_t inode_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : status.st_ino;
}

struct identity identity_self(void)
{
	struct identity self = { .pid = getpid() };
	struct process_status status;
	char link[16] = "";

	/* A /proc of another pid namespace would tell of other processes. */
	if (readlink("/proc/self", link, sizeof(link) - 1) < 0 || atoi(link) != self.pid)
		return self;
	if (status_read(self.pid, &status))
		self.start = status.start;
	self.view = inode_of("/proc/self/ns/pid") ^ inode_of("/proc/self/ns/time") << 32;
	return self;
}

bool identity_is_dead(const struct identity *who, uint64_t my_view)
{
	struct process_status status;

	if (!my_view || who->view != my_view)
		return false;
	if (kill(who->pid, 0) && errno == ESRCH)
		return true;
	if (!who->start || !status_read(who->pid, &status))
		return false;
	if (status.start != who->start)
		return true;
	/* A leader that called pthread_exit is a zombie too while its threads live. */
	return (status.state == 'Z' || status.state == 'X') && status.threads <= 1;
}
