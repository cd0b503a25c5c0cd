/* SPDX-License-Identifier: MIT */
/* Files below /etc; see etc_file.h. */
#include "cli/etc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/translation.h"
#include "output/memory.h"

enum {
	FILE_MOST = 1 << 20,
	LABEL_MOST = 512,
};

#define LOCK_FILE "/etc/.rdma_intercept.lock"

static const char label_name[] = "security.selinux";

static int etc_fail(const char *path, char problem[PROBLEM_SIZE])
{
	return problem_set(-errno, problem, "%s: %s", path, strerror(errno));
}

static const char *candidate_of(const char *path, char ret_path[PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s%s", path, ETC_FILE_CANDIDATE);
	return ret_path;
}

int etc_file_lock(char problem[PROBLEM_SIZE])
{
	struct stat own, present;
	int fd, result;

	for (;;) {
		fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return etc_fail(LOCK_FILE, problem);
		if (TEMP_FAILURE_RETRY(flock(fd, LOCK_EX)) || fstat(fd, &own)) {
			result = etc_fail(LOCK_FILE, problem);
			close(fd);
			return result;
		}
		/* Who had the lock before has removed the file. */
		if (!lstat(LOCK_FILE, &present) && own.st_ino == present.st_ino &&
		    own.st_dev == present.st_dev)
			return fd;
		close(fd);
	}
}

void etc_file_unlock(int lock)
{
	unlink(LOCK_FILE);
	close(lock);
}

int etc_file_read(const char *path, char **ret_text, char problem[PROBLEM_SIZE])
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), result = 0;
	struct stat status;
	ssize_t length;
	char *text;

	if (fd < 0 && errno == ENOENT) {
		*ret_text = NULL;
		return 0;
	}
	if (fd < 0 && errno != ELOOP)
		return etc_fail(path, problem);
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size >= FILE_MOST) {
		if (fd >= 0)
			close(fd);
		return problem_set(-EINVAL, problem,
				   _("%s: it is a link, a directory or too large: expected a regular file"),
				   path);
	}
	text = memory_need(malloc((size_t)status.st_size + 1));
	length = file_read(fd, text, (size_t)status.st_size);
	close(fd);
	if (length < 0) {
		errno = (int)-length;
		result = etc_fail(path, problem);
		free(text);
		return result;
	}
	text[length] = '\0';
	if (strlen(text) != (size_t)length) {
		free(text);
		return problem_set(-EINVAL, problem, _("%s: it contains a byte 0: expected text"), path);
	}
	*ret_text = text;
	return 0;
}

/* Owner, mode and label of the file that is going to be replaced; for a new one root's, 0644. */
static int candidate_dress(int fd, const char *path)
{
	char label[LABEL_MOST];
	struct stat status;
	ssize_t length;

	if (stat(path, &status))
		return fchmod(fd, 0644);
	length = getxattr(path, label_name, label, sizeof(label));
	if (length > 0 && fsetxattr(fd, label_name, label, (size_t)length, 0) && errno != ENOTSUP)
		return -1;
	return fchown(fd, status.st_uid, status.st_gid) || fchmod(fd, status.st_mode & 07777) ? -1 : 0;
}

int etc_file_prepare(const char *path, const char *text, char problem[PROBLEM_SIZE])
{
	char candidate[PATH_MAX];
	size_t length = strlen(text);
	int fd, result = 0;

	/* Of one who was killed: whoever has the lock is the only one here. */
	etc_file_abandon(path);
	fd = open(candidate_of(path, candidate), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return etc_fail(candidate, problem);
	errno = ENOSPC; /* of a write that is cut short */
	if (write(fd, text, length) != (ssize_t)length || candidate_dress(fd, path) || fsync(fd))
		result = etc_fail(candidate, problem);
	close(fd);
	if (result)
		etc_file_abandon(path);
	return result;
}

/* So that the name is on the disk, too. */
static int directory_sync(const char *path)
{
	char directory[PATH_MAX];
	int fd, result;

	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	result = fsync(fd);
	close(fd);
	return result;
}

/* Programs that know nothing of the lock change files below /etc, too. */
static int present_check(const char *path, const char *old, char problem[PROBLEM_SIZE])
{
	char *present = NULL;
	int result = etc_file_read(path, &present, problem);

	if (!result && strcmp(present ? present : "", old ? old : ""))
		result = problem_set(-EBUSY, problem,
				     _("%s: another program has changed it meanwhile: run the command again"),
				     path);
	free(present);
	return result;
}

int etc_file_commit(const char *path, const char *old, char problem[PROBLEM_SIZE])
{
	char candidate[PATH_MAX];
	int result = present_check(path, old, problem);

	if (result)
		return result;
	if (rename(candidate_of(path, candidate), path) || directory_sync(path))
		return etc_fail(path, problem);
	return 0;
}

void etc_file_abandon(const char *path)
{
	char candidate[PATH_MAX];

	unlink(candidate_of(path, candidate));
}

int etc_file_remove(const char *path, char problem[PROBLEM_SIZE])
{
	if ((unlink(path) || directory_sync(path)) && errno != ENOENT)
		return etc_fail(path, problem);
	return 0;
}
