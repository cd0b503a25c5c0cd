/* SPDX-License-Identifier: MIT */
/* Files that are locked; see lockfile.h. */
#include "monitor/kernel/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int lockfile_take(const char *path, int how)
{
	int fd, result;

	if (mkdir(LOCKFILE_DIRECTORY, 0755) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (!flock(fd, how))
		return fd;
	result = -errno;
	close(fd);
	return result;
}
