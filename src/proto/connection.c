/* SPDX-License-Identifier: MIT */
/*
 * The connection to a collector, and which users to trust at its other end; see
 * call.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/call.h"

/* The beginning of a small file; "" when it cannot be read. */
static void server_file_read(const char *path, char *ret_text, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : syscall(SYS_read, fd, ret_text, size - 1);

	if (fd >= 0)
		syscall(SYS_close, fd);
	ret_text[length > 0 ? length : 0] = '\0';
}

/* Whether every uid of the host is here what it is there. Unknown counts as yes. */
static bool server_uids_are_the_hosts(void)
{
	char text[128], *at = text;
	unsigned long inside, outside, count;

	server_file_read("/proc/self/uid_map", text, sizeof(text));
	if (!text[0])
		return true;
	inside = strtoul(at, &at, 10);
	outside = strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	return inside == 0 && outside == 0 && count == UINT32_MAX;
}

static uid_t server_overflow_uid(void)
{
	char text[16];

	server_file_read("/proc/sys/kernel/overflowuid", text, sizeof(text));
	return text[0] ? (uid_t)strtoul(text, NULL, 10) : 65534;
}

/*
 * Anybody can put a socket into /tmp before the collector does, and whoever
 * answers decides what we may create and gives us memory to map: so the server
 * must be root's, or our own. In a user namespace the host's root has no number
 * of its own and looks like everybody else who has none; the real one is taken
 * at the price that they could pass for it, if they can write in our directories.
 */
static int server_owner_check(struct call *call, const char *what, uid_t owner)
{
	if (owner == 0 || owner == geteuid() ||
	    (owner == server_overflow_uid() && !server_uids_are_the_hosts()))
		return 0;
	return call_fail(call, -EPERM,
			 "the %s at %s has uid %u: expected root or uid %u", what,
			 call->path, (unsigned)owner, (unsigned)geteuid());
}

/* The server's queue is full. Who tries again later comes after all who wait in line: so the
 * next attempt waits there too, as long as there is patience. A signal ends an attempt, and
 * then the next one waits only for the rest. */
static bool connection_queue_up(struct call *call)
{
	int64_t left = call->patience - call_clock_ns();
	struct timeval wait = { left / SECOND, left % SECOND / 1000 };

	return left >= MILLISECOND &&
	       !setsockopt(call->connection, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) &&
	       !fcntl(call->connection, F_SETFL, 0);
}

/* No connection can be made; whether somebody serves the path stays open, unless nothing is
 * there. */
static int connection_no_socket(struct call *call, int error)
{
	if (!access(call->path, F_OK) || errno != ENOENT)
		return call_fail(call, error == EMFILE ? -EMFILE : -ENOBUFS, "cannot make a socket for %s: %s",
				 call->path, strerror(error));
	call->lost = true;
	return call_fail(call, -ENOENT, "no collector at %s: %s", call->path, strerror(ENOENT));
}

int connection_make(struct call *call)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(call->path);
	int fd, other;

	if (length >= sizeof(address.sun_path))
		return call_fail(call, -ENAMETOOLONG,
				 "a socket's path may have %zu characters, not %zu: %s",
				 sizeof(address.sun_path) - 1, length, call->path);
	memcpy(address.sun_path, call->path, length);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		/* The program closed it, and may still write to it. */
		other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		syscall(SYS_close, fd);
		fd = other;
	}
	if (fd < 0)
		return connection_no_socket(call, errno);
	call->connection = fd;
	while (syscall(SYS_connect, fd, &address, sizeof(address))) {
		int error = errno;
		bool full = error == EAGAIN || error == EINTR;
		struct stat place;

		/* For a stranger, who could let it be full for ever, nobody waits. */
		if (full && !stat(call->path, &place) &&
		    server_owner_check(call, "socket", place.st_uid))
			return -EPERM;
		if (full && connection_queue_up(call))
			continue;
		call->lost = full || error == ENOENT || error == ECONNREFUSED;
		if (full)
			return call_fail(call, -ETIMEDOUT,
					 "the collector at %s is busy: its queue is full",
					 call->path);
		return call_fail(call, -error, "no collector at %s: %s", call->path,
				 strerror(error));
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return 0;
}

int server_check(struct call *call)
{
	struct ucred server;
	socklen_t size = sizeof(server);

	if (getsockopt(call->connection, SOL_SOCKET, SO_PEERCRED, &server, &size))
		return call_fail(call, -errno, "cannot identify the server of %s: %s", call->path, strerror(errno));
	return server_owner_check(call, "server", server.uid);
}

bool connection_make_waiting(int fd)
{
	const struct timeval wait = { PROTO_REPLY_MS / 1000, PROTO_REPLY_MS % 1000 * 1000 };

	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) &&
	       !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) &&
	       !fcntl(fd, F_SETFL, 0);
}
