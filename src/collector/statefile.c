/* SPDX-License-Identifier: MIT */
/* Files of the state directory; see statefile.h. */
#include "collector/statefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int statefile_problem(char problem[PROBLEM_SIZE], int result, const char *path, const char *name,
		      const char *what)
{
	return problem_set(result, problem, "%s%s%s: %s", path, name[0] ? "/" : "", name,
			   what ? what : strerror(-result));
}

int statefile_directory(const char *path, char problem[PROBLEM_SIZE])
{
	struct stat status;
	int directory, result = file_make_directories(path, 0755, 0700, false);

	if (result < 0)
		return statefile_problem(problem, result, path, "", NULL);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return statefile_problem(problem, -errno, path, "", NULL);
	if (!fstat(directory, &status) && status.st_uid == geteuid() && !(status.st_mode & 077))
		return directory;
	close(directory);
	return statefile_problem(
		problem, -EPERM, path, "",
		"must belong to the collector's user and be closed to others (0700)");
}

int statefile_directory_lock(int directory, const char *path, char problem[PROBLEM_SIZE])
{
	if (!flock(directory, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return statefile_problem(problem, -errno, path, "", NULL);
	return problem_set(-EBUSY, problem,
			   "state directory %s: another collector uses it: stop that collector, or "
			   "choose another directory by --state",
			   path);
}

int statefile_make(int directory, const char *name, size_t size, const void *head, size_t head_size)
{
	char temporary[64];
	int fd, result = 0;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	fd = openat(directory, temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || pwrite(fd, head, head_size, 0) != (ssize_t)head_size ||
	    renameat(directory, temporary, directory, name))
		result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

int statefile_reserve(int fd, const void *base, const void *from, size_t size)
{
	off_t offset = (const char *)from - (const char *)base;
	int result;

	while ((result = posix_fallocate(fd, offset, (off_t)size)) == EINTR)
		;
	return -result;
}

void *statefile_map(int directory, const char *name, size_t size, int *ret_fd)
{
	struct stat status;
	void *memory;
	int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) || (size_t)status.st_size != size) {
		close(fd);
		errno = EILSEQ;
		return NULL;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	/* Few pages of it are ever used. On a disk the kernel would make those around each, too. */
	madvise(memory, size, MADV_RANDOM);
	*ret_fd = fd;
	return memory;
}
