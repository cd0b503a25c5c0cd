/* SPDX-License-Identifier: MIT */
/* Sockets that listen; see address.h. */
#include "dashboard/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "terms/size.h"

enum { BACKLOG = 128 };

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un path;
};

static int address_parse(const char *address, union any_address *ret_address, socklen_t *ret_size,
			 char ret_host[ADDRESS_TEXT])
{
	const char *colon = strrchr(address, ':'), *begin = address, *end = colon;
	uint64_t port;

	if (!colon || size_parse(colon + 1, strlen(colon + 1), 1, false, &port) < 0 ||
	    port > UINT16_MAX)
		return -EINVAL;
	if (*begin == '[' && end[-1] == ']') {
		begin++;
		end--;
	}
	if (end - begin >= ADDRESS_TEXT)
		return -EINVAL;
	snprintf(ret_host, ADDRESS_TEXT, "%.*s", (int)(end - begin), begin);
	*ret_address = (union any_address){ .v4 = { .sin_family = AF_INET,
						    .sin_port = htons((uint16_t)port) } };
	*ret_size = sizeof(ret_address->v4);
	if (inet_pton(AF_INET, ret_host, &ret_address->v4.sin_addr) == 1)
		return 0;
	*ret_address = (union any_address){ .v6 = { .sin6_family = AF_INET6,
						    .sin6_port = htons((uint16_t)port) } };
	*ret_size = sizeof(ret_address->v6);
	return inet_pton(AF_INET6, ret_host, &ret_address->v6.sin6_addr) == 1 ? 0 : -EINVAL;
}

/* Closes the socket, which did not work out. */
static int address_fail(int fd, int error, const char *name, char problem[PROBLEM_SIZE])
{
	if (fd >= 0)
		close(fd);
	return problem_set(error, problem,
			   "%.200s: cannot listen: %s: expected another address by --listen or --unix",
			   name, strerror(-error));
}

int address_listen(const char *address, char ret_address[ADDRESS_TEXT],
		   char ret_host[ADDRESS_TEXT], char problem[PROBLEM_SIZE])
{
	union any_address parsed;
	const int on = 1;
	socklen_t size;
	int fd;

	if (address_parse(address, &parsed, &size, ret_host) < 0)
		return problem_set(-EINVAL, problem,
				   "%.100s: invalid address: expected ADDRESS:PORT, such as "
				   "127.0.0.1:9910 or [::1]:9910",
				   address);
	fd = socket(parsed.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &parsed.any, size) || listen(fd, BACKLOG) ||
	    getsockname(fd, &parsed.any, &size))
		return address_fail(fd, -errno, address, problem);
	snprintf(ret_address, ADDRESS_TEXT, parsed.any.sa_family == AF_INET6 ? "[%.50s]:%u" : "%.50s:%u",
		 ret_host,
		 ntohs(parsed.any.sa_family == AF_INET6 ? parsed.v6.sin6_port :
							  parsed.v4.sin_port));
	return fd;
}

/* Whether nobody accepts connections there any more. */
static bool path_is_abandoned(const union any_address *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool abandoned = fd >= 0 &&
			 connect(fd, &address->any, sizeof(address->path)) &&
			 errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return abandoned;
}

int address_listen_path(const char *path, char problem[PROBLEM_SIZE])
{
	union any_address address = { .path = { .sun_family = AF_UNIX } };
	struct stat status;
	mode_t before;
	int fd, failed;

	if (strlen(path) >= sizeof(address.path.sun_path))
		return problem_set(-ENAMETOOLONG, problem,
				   "%.200s: path too long: expected less than %zu characters", path,
				   sizeof(address.path.sun_path));
	strcpy(address.path.sun_path, path);
	if (!lstat(path, &status) && S_ISSOCK(status.st_mode) && path_is_abandoned(&address))
		unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	before = umask(0117);
	failed = fd < 0 || bind(fd, &address.any, sizeof(address.path)) || listen(fd, BACKLOG);
	umask(before);
	return failed ? address_fail(fd, -errno, path, problem) : fd;
}
