/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/stat of every process; see session.h. */
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool stat_read(pid_t process, char *ret_state, pid_t *ret_session, uint64_t *ret_ticks)
{
	unsigned long long user, system;
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
	if (!rest || sscanf(rest + 1, " %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			    ret_state, ret_session, &user, &system) != 4)
		return false;
	*ret_ticks = user + system;
	return true;
}

bool session_ticks(pid_t session, uint64_t *ret_ticks)
{
	DIR *processes = opendir("/proc");
	bool runnable = false;
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
		runnable |= state == 'R' || state == 'D';
	}
	if (processes)
		closedir(processes);
	return runnable;
}
