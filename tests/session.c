/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/stat of every process; see session.h. */
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool stat_read(pid_t process, char *ret_state, pid_t *ret_session, uint64_t *ret_ticks)
{
	unsigned long long time[4]; /* user and system, its own and of children that it has reaped */
	char path[64], text[1024], *rest;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
	rest = strrchr(text, ')'); /* the name of a command may contain anything */
	if (!rest || strstr(text, "(" SESSION_WAITER ")") ||
	    sscanf(rest + 1, " %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   ret_state, ret_session, &time[0], &time[1], &time[2], &time[3]) != 6)
		return false;
	*ret_ticks = time[0] + time[1] + time[2] + time[3];
	return true;
}

/* Adds up the processor time of the session, but for waiters and ourselves. Returns whether a
 * process waits for a device. */
static bool ticks_read(pid_t session, uint64_t *ret_ticks)
{
	DIR *processes = opendir("/proc");
	bool waits = false;
	struct dirent *entry;

	*ret_ticks = 0;
	while (processes && (entry = readdir(processes))) {
		pid_t process = atoi(entry->d_name), its_session;
		uint64_t ticks;
		char state;

		if (process <= 0 || process == getpid() ||
		    !stat_read(process, &state, &its_session, &ticks) || its_session != session)
			continue;
		*ret_ticks += ticks;
		waits |= state == 'D';
	}
	if (processes)
		closedir(processes);
	return waits;
}

void session_watch_begin(struct session_watch *watch, pid_t session, double span, double now)
{
	*watch = (struct session_watch){ .session = session, .span = span, .marked = now,
					 .moved = now };
	ticks_read(session, &watch->ticks);
}

double session_still(struct session_watch *watch, double now)
{
	enum { WORK_PERCENT = 2 };
	double span = now - watch->marked;
	bool moves;
	uint64_t ticks;

	moves = ticks_read(watch->session, &ticks);
	if (ticks < watch->ticks) { /* the dead take their ticks with them */
		moves = true;
	} else if (span < watch->span && !moves) {
		return now - watch->moved;
	} else {
		moves |= (double)(ticks - watch->ticks) >=
			 span * (double)sysconf(_SC_CLK_TCK) * WORK_PERCENT / 100;
		watch->total += ticks - watch->ticks;
	}
	if (moves)
		watch->moved = now;
	watch->marked = now;
	watch->ticks = ticks;
	return now - watch->moved;
}
