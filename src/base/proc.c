/* SPDX-License-Identifier: MIT */
/* Reading of /proc; see proc.h. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* Fields of /proc/PID/stat, counted from 1. */
enum { FIELD_AFTER_STATE = 4, FIELD_THREADS = 20, FIELD_START = 22 };

/* Raw system calls: the wrappers are cancellation points. */
ssize_t proc_read(pid_t pid, const char *name, char *text, size_t size)
{
	int before = errno, fd;
	ssize_t length;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -errno : syscall(SYS_read, fd, text, size - 1);
	if (fd >= 0 && length < 0)
		length = -errno;
	if (fd >= 0)
		syscall(SYS_close, fd);
	text[length > 0 ? length : 0] = '\0';
	errno = before;
	return length;
}

int proc_stat_read(pid_t pid, struct proc_stat *ret_stat)
{
	char text[1024], *at;
	ssize_t length = proc_read(pid, "stat", text, sizeof(text));

	if (length <= 0)
		return length < 0 ? (int)length : -ESRCH;
	at = strrchr(text, ')'); /* the name before it may hold anything */
	if (!at || at[1] != ' ')
		return -EPROTO;
	ret_stat->state = at[2];
	at += 3;
	for (int field = FIELD_AFTER_STATE; field <= FIELD_START; field++) {
		unsigned long long value = strtoull(at, &at, 10);

		if (field == FIELD_THREADS)
			ret_stat->threads = (unsigned long)value;
		if (field == FIELD_START)
			ret_stat->start = value;
	}
	return *at == ' ' ? 0 : -EPROTO;
}

bool proc_stat_has_ended(const struct proc_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

uint64_t proc_tick_ns(void)
{
	return CLOCK_SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
}
