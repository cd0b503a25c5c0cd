/* SPDX-License-Identifier: MIT */
/* The token; see token.h. */
#include "dashboard/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* As root in the directory of the service: the service must be able to read it. */
static int token_give_to_owner(int fd, const char *path)
{
	char directory[4096];
	struct stat owner;
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = '\0';
	if (stat(directory, &owner))
		return -errno;
	return owner.st_uid != geteuid() && fchown(fd, owner.st_uid, owner.st_gid) ? -errno : 0;
}

int token_make(const char *path, char problem[PROBLEM_SIZE])
{
	unsigned char bytes[(TOKEN_TEXT - 1) / 2];
	char token[TOKEN_TEXT + 1];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int result = 0;

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return problem_set(-errno, problem, "%.300s: the token cannot be read or made: %s", path,
				   strerror(errno));
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		result = -EIO;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		sprintf(token + 2 * i, "%02x", bytes[i]);
	strcat(token, "\n");
	if (!result && write(fd, token, TOKEN_TEXT) != TOKEN_TEXT)
		result = -EIO;
	if (!result)
		result = token_give_to_owner(fd, path);
	close(fd);
	if (!result)
		return 0;
	unlink(path);
	return problem_set(result, problem, "%.300s: the token cannot be written: %s", path,
			   strerror(-result));
}

int token_read(const char *path, char ret_token[TOKEN_TEXT], char problem[PROBLEM_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char token[TOKEN_TEXT] = "";
	struct stat status;
	ssize_t length;

	if (fd < 0 && errno == ENOENT)
		return problem_set(-ENOENT, problem,
				   "%.300s: there is no token: rdma_dashboard makes it when it starts: "
				   "start rdma_dashboard, or name its directory with --state",
				   path);
	if (fd < 0)
		return problem_set(-errno, problem, "%.300s: the token cannot be read: %s", path,
				   strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_mode & 077 ||
	    (geteuid() && status.st_uid && status.st_uid != geteuid())) {
		close(fd);
		return problem_set(-EPERM, problem,
				   "%.300s: unsafe token file: expected a file of this user with "
				   "mode 0600",
				   path);
	}
	length = file_read(fd, token, TOKEN_TEXT - 1);
	close(fd);
	if (length != TOKEN_TEXT - 1 || strspn(token, "0123456789abcdef") != TOKEN_TEXT - 1)
		return problem_set(-EINVAL, problem,
				   "%.300s: invalid token: expected %d hexadecimal digits; remove "
				   "the file for a new one",
				   path, TOKEN_TEXT - 1);
	strcpy(ret_token, token);
	return 0;
}

bool token_matches(const char *token, const char *authorization)
{
	static const char scheme[] = "Bearer ";
	unsigned char different = 0;
	const char *given;

	if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1))
		return false;
	given = authorization + sizeof(scheme) - 1;
	if (strlen(given) != TOKEN_TEXT - 1)
		return false;
	for (unsigned i = 0; i < TOKEN_TEXT - 1; i++)
		different |= (unsigned char)(given[i] ^ token[i]);
	return !different;
}
