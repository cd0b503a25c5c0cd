/* SPDX-License-Identifier: MIT */
/* Reading of /proc/self/maps; see maps.h. */
#include "base/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void maps_path_of(int fd, char *ret_path, size_t size)
{
	char link[40];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, ret_path, size - 1);
	ret_path[length > 0 ? length : 0] = '\0';
}

bool maps_have(const char *path)
{
	char text[4096 + 1];
	size_t kept = 0, length = strlen(path);
	bool found = false;
	ssize_t got;
	int fd;

	if (!length || length > 1024)
		return false;
	fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found && (got = syscall(SYS_read, fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		text[kept + (size_t)got] = '\0';
		found = strstr(text, path) != NULL;
		/* A name may be cut in two: keep an end that is shorter than it. */
		kept += (size_t)got;
		if (kept >= length) {
			memmove(text, text + kept - (length - 1), length - 1);
			kept = length - 1;
		}
	}
	syscall(SYS_close, fd);
	return found;
}
