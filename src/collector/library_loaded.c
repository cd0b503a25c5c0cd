/* SPDX-License-Identifier: MIT */
/* The mappings of a process; see library_loaded.h. */
#include "collector/library_loaded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

#define LIBRARY "librdma_intercept"
#define MAPS_PAUSE_NS 10000000000ull

enum {
	MAPS_MS = 100,	     /* for that list to be read, */
	STARVED_MS = 1000,   /* or so long while the reader waits for a processor */
	MAPS_MOST = 4 << 20, /* bytes of one process's list of mappings that are looked at */
};

/* Whether the library is among a process's mappings: 1, 0, or -errno. */
static int library_in_mappings(pid_t pid)
{
	enum { TAIL = sizeof(LIBRARY) - 2 };
	static char text[65536];
	size_t kept = 0, seen = 0;
	char path[40];
	bool found = false;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!found && seen < MAPS_MOST &&
	       (length = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t size = kept + (size_t)length;

		found = memmem(text, size, LIBRARY, sizeof(LIBRARY) - 1);
		seen += (size_t)length;
		/* The name may have been cut in two. */
		kept = size < TAIL ? size : TAIL;
		memmove(text, text + size - kept, kept);
	}
	close(fd);
	return found;
}

/* Waits for the child's answer: false if it is late, since something else than a lack of processors
 * keeps it. */
static bool answer_wait(int fd, pid_t child)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct proc_stat stat = { .state = 'R' };

	for (int ms = 0; ms < STARVED_MS && stat.state == 'R'; ms += MAPS_MS) {
		if (poll(&poll_fd, 1, MAPS_MS) > 0)
			return true;
		if (proc_stat_read(child, &stat) < 0)
			break;
	}
	return false;
}

/*
 * The same by a child, which has only so long: a process can keep the lock on its mappings for as
 * long as it likes, for example in a file system of its own. After one that does, others are not
 * looked at for a while.
 */
int library_is_loaded(pid_t pid)
{
	static uint64_t not_before_ns;
	static pid_t late; /* a child that is still to be reaped */
	int ends[2], result = -ETIMEDOUT;
	pid_t child;

	if (late > 0 && waitpid(late, NULL, WNOHANG) == 0)
		return -EBUSY;
	late = 0;
	if (clock_now_ns() < not_before_ns)
		return -EBUSY;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child == 0) {
		result = library_in_mappings(pid);
		_exit(write(ends[1], &result, sizeof(result)) != sizeof(result));
	}
	close(ends[1]);
	if (child < 0)
		result = -errno;
	else if (!answer_wait(ends[0], child) ||
		 read(ends[0], &result, sizeof(result)) != sizeof(result))
		not_before_ns = clock_now_ns() + MAPS_PAUSE_NS;
	close(ends[0]);
	if (child < 0)
		return result;
	if (result == -ETIMEDOUT)
		kill(child, SIGKILL);
	if (waitpid(child, NULL, result == -ETIMEDOUT ? WNOHANG : 0) == 0)
		late = child;
	return result;
}
