/* SPDX-License-Identifier: MIT */
/* Reading of identities from /proc; see identity.h. */
#include "ledger/identity.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"

uint64_t identity_start(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, &stat) ? 0 : stat.start;
}

static uint64_t inode_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : status.st_ino;
}

struct identity identity_self(void)
{
	struct identity self = { .pid = getpid() };
	struct proc_stat stat;
	char link[16] = "";

	/* A /proc of another pid namespace would tell of other processes. */
	if (readlink("/proc/self", link, sizeof(link) - 1) < 0 || atoi(link) != self.pid)
		return self;
	if (!proc_stat_read(self.pid, &stat))
		self.start = stat.start;
	self.view = inode_of("/proc/self/ns/pid") ^ inode_of("/proc/self/ns/time") << 32;
	return self;
}

bool identity_is_dead(const struct identity *who, uint64_t my_view)
{
	struct proc_stat stat;

	if (!my_view || who->view != my_view)
		return false;
	if (kill(who->pid, 0) && errno == ESRCH)
		return true;
	if (!who->start || proc_stat_read(who->pid, &stat))
		return false;
	if (stat.start != who->start)
		return true;
	return proc_stat_has_ended(&stat);
}
