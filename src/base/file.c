/* SPDX-License-Identifier: MIT */
/* Files as a whole; see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t file_read(int fd, char *memory, size_t size)
{
	size_t length = 0;
	ssize_t more = 1;

	while (more > 0 && length < size) {
		more = read(fd, memory + length, size - length);
		if (more < 0)
			return -errno;
		length += (size_t)more;
	}
	return (ssize_t)length;
}

ssize_t file_read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -errno : file_read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

int file_replace(const char *path, int (*write)(FILE *file, const void *closure),
		 const void *closure)
{
	char *temporary;
	FILE *file = NULL;
	int fd, result = 0;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0) {
		result = -errno;
		goto out;
	}
	file = fdopen(fd, "w");
	if (!file) {
		result = -errno;
		close(fd);
		goto remove;
	}
	errno = 0;
	result = write(file, closure);
	if (result == 0 && (ferror(file) || fflush(file)))
		result = errno ? -errno : -EIO;
	if (fclose(file) && result == 0)
		result = -errno;
	if (result == 0 && rename(temporary, path))
		result = -errno;
remove:
	if (result < 0)
		unlink(temporary);
out:
	free(temporary);
	return result;
}

/* Through a descriptor, since chmod() follows a link that takes the directory's place. */
static int directory_set_mode(const char *path, mode_t mode)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result;

	if (fd < 0)
		return -errno;
	result = fchmod(fd, mode) ? -errno : 0;
	close(fd);
	return result;
}

static int file_make_directory(const char *path, mode_t mode, bool exactly)
{
	if (mkdir(path, mode))
		return errno == EEXIST ? 0 : -errno;
	return exactly ? directory_set_mode(path, mode) : 0;
}

int file_make_directories(const char *path, mode_t above, mode_t mode, bool exactly)
{
	char part[PATH_MAX];
	int result = 0;

	if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (char *slash = strchr(part + 1, '/'); slash && result == 0;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		result = file_make_directory(part, above, exactly);
		*slash = '/';
	}
	return result < 0 ? result : file_make_directory(part, mode, exactly);
}
