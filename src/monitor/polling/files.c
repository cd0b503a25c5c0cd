/* SPDX-License-Identifier: MIT */
/* Files that others map; see files.h. */
#include "monitor/polling/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int files_open(const char *path, int *ret_fd, char problem[PROBLEM_SIZE])
{
	struct stat status = { 0 };
	/* Others must be able to look into it, whatever the umask says. */
	int result = file_make_directories(path, 0755, 0755, true), fd = -1;

	if (result == 0) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &status))
			result = -errno;
	}
	if (result < 0) {
		problem_set(result, problem, "%s: %s", path, strerror(-result));
	} else if ((status.st_uid != geteuid() && status.st_uid) || status.st_mode & 022) {
		result = problem_set(-EPERM, problem,
				     "%s: unsafe directory: expected one of this user or root that no other "
				     "user can write to",
				     path);
	}
	if (result < 0 && fd >= 0)
		close(fd);
	else if (result == 0)
		*ret_fd = fd;
	return result;
}

enum { TEMPORARY = 16 };

static void files_temporary(const char *name, char ret_temporary[TEMPORARY])
{
	snprintf(ret_temporary, TEMPORARY, ".%s.new", name);
}

int files_make(int directory, const char *name, size_t bytes, void **ret_memory,
	       struct stat *ret_identity)
{
	char temporary[TEMPORARY];
	void *memory = MAP_FAILED;
	int fd, result = 0;

	files_temporary(name, temporary);
	unlinkat(directory, temporary, 0);
	fd = openat(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	/* The memory is there before it is touched: a full file system must not be a SIGBUS. */
	result = -posix_fallocate(fd, 0, (off_t)bytes);
	if (result == 0 && (fchmod(fd, 0644) || fstat(fd, ret_identity)))
		result = -errno;
	if (result == 0) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED)
			result = -errno;
	}
	close(fd);
	if (result < 0)
		unlinkat(directory, temporary, 0);
	else
		*ret_memory = memory;
	return result;
}

int files_name(int directory, const char *name)
{
	char temporary[TEMPORARY];

	files_temporary(name, temporary);
	return renameat(directory, temporary, directory, name) ? -errno : 0;
}

void files_discard(int directory, const char *name)
{
	char temporary[TEMPORARY];

	files_temporary(name, temporary);
	unlinkat(directory, temporary, 0);
}
