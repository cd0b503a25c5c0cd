/* SPDX-License-Identifier: MIT */
/*
 * Calls to a collector; see client.h. This runs inside foreign programs: the
 * system calls whose libc wrappers are cancellation points are raw, sockets
 * never block, and every wait has an end. Knows how messages travel, not what
 * they mean.
 */
#include "proto/client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"

/* Moments are ns of CLOCK_MONOTONIC. */
#define MILLISECOND 1000000ll
#define SECOND (1000 * MILLISECOND)
#define FOREVER INT64_MAX
#define REPLY_LEAST (PROTO_REPLY_MS * MILLISECOND)
#define PAUSE_FIRST (5 * MILLISECOND)
#define PAUSE_LONGEST (50 * MILLISECOND)

enum { ERRNO_MOST = 4095 }; /* as the kernel has it: what is below -4095 is no -errno */

union any_request {
#define MESSAGE(name, number, request, reply, who, how) struct proto_##request name;
#include "proto/messages.def"
#undef MESSAGE
};

union any_reply {
#define MESSAGE(name, number, request, reply, who, how) struct proto_##reply name;
#include "proto/messages.def"
#undef MESSAGE
	char sentence[PROTO_TEXT]; /* of a failure */
};

struct call {
	const char *path;
	const struct proto_message *message;
	const void *request;
	proto_row_function *each; /* for replies in rows */
	void *closure;
	bool follow;	  /* rows may come at any time */
	bool kept;	  /* over a connection that is not ours to close, and waits by itself */
	int64_t patience; /* until when a lost connection is made again */
	char *problem;
	/* of the present attempt: */
	bool lost; /* it failed as it does while a collector is started again */
	int connection;
	int64_t deadline; /* of the message that is under way */
	unsigned fds;
	int fd[PROTO_FDS];
	bool row_given;
	int status;
	union any_reply reply;
};

static __attribute__((format(printf, 3, 4))) int fail(struct call *call, int error,
						      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(call->problem, PROTO_PROBLEM, format, arguments);
	va_end(arguments);
	return error;
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static int64_t reply_deadline(const struct call *call)
{
	int64_t least = now() + REPLY_LEAST;

	return least > call->patience ? least : call->patience;
}

/* Waits for events on a descriptor (-1: for none); -ETIMEDOUT when the moment has come. */
static int wait_until(int64_t moment, int fd, short events)
{
	struct pollfd wanted = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = moment - now();
		struct __kernel_old_timespec timeout = { left / SECOND, left % SECOND };
		long ready;

		if (left <= 0)
			return -ETIMEDOUT;
		ready = syscall(SYS_ppoll, &wanted, 1, &timeout, NULL, 0);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
	}
}

/* ---- whom to trust */

/* The beginning of a small file; "" when it cannot be read. */
static void file_read(const char *path, char *ret_text, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : syscall(SYS_read, fd, ret_text, size - 1);

	if (fd >= 0)
		syscall(SYS_close, fd);
	ret_text[length > 0 ? length : 0] = '\0';
}

/* Whether every uid of the host is here what it is there. Unknown counts as yes. */
static bool uids_are_the_hosts(void)
{
	char text[128], *at = text;
	unsigned long inside, outside, count;

	file_read("/proc/self/uid_map", text, sizeof(text));
	if (!text[0])
		return true;
	inside = strtoul(at, &at, 10);
	outside = strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	return inside == 0 && outside == 0 && count == UINT32_MAX;
}

static uid_t overflow_uid(void)
{
	char text[16];

	file_read("/proc/sys/kernel/overflowuid", text, sizeof(text));
	return text[0] ? (uid_t)strtoul(text, NULL, 10) : 65534;
}

/*
 * Anybody can put a socket into /tmp before the collector does, and whoever
 * answers decides what we may create and gives us memory to map: so the server
 * must be root's, or our own. In a user namespace the host's root has no number
 * of its own and looks like everybody else who has none; the real one is taken
 * at the price that they could pass for it, if they can write in our directories.
 */
static int owner_check(struct call *call, const char *what, uid_t owner)
{
	if (owner == 0 || owner == geteuid() || (owner == overflow_uid() && !uids_are_the_hosts()))
		return 0;
	return fail(call, -EPERM, "the %s at %s is of uid %u, neither root's nor of our own uid %u",
		    what, call->path, (unsigned)owner, (unsigned)geteuid());
}

/* ---- connecting */

/* The server's queue is full. Who tries again later comes after all who wait in line: so the
 * next attempt waits there too, as long as there is patience. A signal ends an attempt, and
 * then the next one waits only for the rest. */
static bool queue_up(struct call *call)
{
	int64_t left = call->patience - now();
	struct timeval wait = { left / SECOND, left % SECOND / 1000 };

	return left >= MILLISECOND &&
	       !setsockopt(call->connection, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) &&
	       !fcntl(call->connection, F_SETFL, 0);
}

/* No connection can be made; whether somebody serves the path stays open, unless nothing is
 * there. */
static int no_socket(struct call *call, int error)
{
	if (!access(call->path, F_OK) || errno != ENOENT)
		return fail(call, error == EMFILE ? -EMFILE : -ENOBUFS, "a socket for %s: %s", call->path, strerror(error));
	call->lost = true;
	return fail(call, -ENOENT, "no collector at %s: %s", call->path, strerror(ENOENT));
}

static int connection_open(struct call *call)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(call->path);
	int fd, other;

	if (length >= sizeof(address.sun_path))
		return fail(call, -ENAMETOOLONG,
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
		return no_socket(call, errno);
	call->connection = fd;
	while (syscall(SYS_connect, fd, &address, sizeof(address))) {
		int error = errno;
		bool full = error == EAGAIN || error == EINTR;
		struct stat place;

		/* For a stranger, who could let it be full for ever, nobody waits. */
		if (full && !stat(call->path, &place) &&
		    owner_check(call, "socket", place.st_uid))
			return -EPERM;
		if (full && queue_up(call))
			continue;
		call->lost = full || error == ENOENT || error == ECONNREFUSED;
		if (full)
			return fail(call, -ETIMEDOUT,
				    "the collector at %s is busy: its queue is full", call->path);
		return fail(call, -error, "no collector at %s: %s", call->path, strerror(error));
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static int server_check(struct call *call)
{
	struct ucred server;
	socklen_t size = sizeof(server);

	if (getsockopt(call->connection, SOL_SOCKET, SO_PEERCRED, &server, &size))
		return fail(call, -errno, "who serves %s: %s", call->path, strerror(errno));
	return owner_check(call, "server", server.uid);
}

/* ---- talking */

static int wait_for_server(struct call *call, short events)
{
	int result = wait_until(call->deadline, call->connection, events);

	if (result == -ETIMEDOUT)
		return fail(call, result, "the collector at %s does not answer", call->path);
	if (result < 0)
		return fail(call, result, "waiting for %s: %s", call->path, strerror(-result));
	return 0;
}

/* Its own buffer takes a whole request, unless the server has left earlier ones unread. */
static int kept_send(struct call *call, const void *whole, size_t length)
{
	ssize_t sent = output_write(call->connection, whole, length);

	if (sent == (ssize_t)length)
		return 0;
	if (sent >= 0 || sent == -EAGAIN)
		return fail(call, -ETIMEDOUT, "the collector at %s does not read", call->path);
	return fail(call, sent == -EPIPE ? -ECONNRESET : (int)sent, "sending to %s: %s", call->path,
		    strerror((int)-sent));
}

static int request_send(struct call *call)
{
	struct {
		struct proto_header header;
		union any_request body;
	} whole = { .header = proto_header(call->message->type, 0, call->message->request) };
	size_t sent = 0;

	if (call->message->request)
		memcpy(&whole.body, call->request, call->message->request);
	if (call->kept)
		return kept_send(call, &whole, whole.header.length);
	while (sent < whole.header.length) {
		ssize_t part = syscall(SYS_sendto, call->connection, (char *)&whole + sent,
				       whole.header.length - sent, MSG_NOSIGNAL, NULL, 0);
		int result = 0;

		if (part >= 0)
			sent += (size_t)part;
		else if (errno == EPIPE || errno == ECONNRESET)
			return 0; /* closed without reading: why may be there to be read */
		else if (errno == EAGAIN)
			result = wait_for_server(call, POLLOUT);
		else if (errno != EINTR)
			result = fail(call, -errno, "sending to %s: %s", call->path,
				      strerror(errno));
		if (result)
			return result;
	}
	return 0;
}

/* Takes the descriptors that came with some bytes, or closes those that are too many. */
static int descriptors_take(struct call *call, struct msghdr *message)
{
	bool too_many = false;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (call->fds < PROTO_FDS) {
				call->fd[call->fds++] = fd;
			} else {
				syscall(SYS_close, fd);
				too_many = true;
			}
		}
	}
	if (!too_many && !(message->msg_flags & MSG_CTRUNC))
		return 0;
	/* The kernel drops what has no room: in our buffer, or in the table of this process. */
	if (call->fds < PROTO_FDS)
		return fail(call, -EMFILE, "no room for the descriptors that %s gives: %s",
			    call->path, strerror(EMFILE));
	return fail(call, -EPROTO, "%s gives more than %d descriptors", call->path, PROTO_FDS);
}

static int receive(struct call *call, void *buffer, size_t size)
{
	size_t got = 0;

	while (got < size) {
		union {
			struct cmsghdr aligned;
			char bytes[CMSG_SPACE(PROTO_FDS * sizeof(int))];
		} control;
		struct iovec rest = { (char *)buffer + got, size - got };
		struct msghdr message = { .msg_iov = &rest,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };
		ssize_t part = call->kept ? syscall(SYS_read, call->connection, rest.iov_base,
						    rest.iov_len) :
					    syscall(SYS_recvmsg, call->connection, &message,
						    MSG_CMSG_CLOEXEC);
		int result = 0;

		if (part > 0) {
			got += (size_t)part;
			if (!call->kept)
				result = descriptors_take(call, &message);
		} else if (part == 0 || errno == ECONNRESET) {
			/* Rows that were given out cannot be taken back. */
			call->lost = !call->row_given;
			result = fail(call, -ECONNRESET,
				      "the collector at %s closed before its reply ended",
				      call->path);
		} else if (call->kept && (errno == EAGAIN || errno == EINTR)) {
			/* It has waited; a signal does not make it wait longer. */
			if (errno == EAGAIN || now() >= call->deadline)
				result = fail(call, -ETIMEDOUT,
					      "the collector at %s does not answer", call->path);
		} else if (errno == EAGAIN) {
			result = wait_for_server(call, POLLIN);
		} else if (errno != EINTR) {
			result = fail(call, -errno, "receiving from %s: %s", call->path,
				      strerror(errno));
		}
		if (result)
			return result;
	}
	return 0;
}

/* The collector's own words, fit for one line of a log. */
static int failure_receive(struct call *call, int status, size_t length)
{
	char *text = call->reply.sentence;
	int result = receive(call, text, length);

	if (result)
		return result;
	length = strnlen(text, length);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
			text[i] = ' ';
	if (!length)
		return fail(call, status, "the collector at %s: %s", call->path, strerror(-status));
	return fail(call, status, "%.*s", (int)length, text);
}

static bool answers(const struct proto_header *header, const struct proto_message *request)
{
	size_t body = header->length - sizeof(*header);

	if (header->type != request->type || header->status < 0)
		return false;
	if (!request->rows)
		return header->status != PROTO_MORE && body == request->reply;
	return header->status == PROTO_MORE ? body == request->reply : !header->status && !body;
}

/* One message of the reply, into call->status and call->reply. */
static int message_receive(struct call *call)
{
	struct proto_header header;
	size_t body;
	int begun, result;

	if (call->follow) {
		result = wait_until(FOREVER, call->connection, POLLIN);
		if (result)
			return fail(call, result, "waiting for %s: %s", call->path,
				    strerror(-result));
		call->deadline = reply_deadline(call);
	}
	result = receive(call, &header, sizeof(header));
	if (result)
		return result;
	begun = snprintf(call->problem, PROTO_PROBLEM, "from the server at %s came ", call->path);
	result = proto_check(&header, PROTO_REPLY_MAX, call->problem + begun,
			     PROTO_PROBLEM - (size_t)begun);
	if (result)
		return result;
	body = header.length - sizeof(header);
	if (header.status < 0 && header.status >= -ERRNO_MOST && body <= PROTO_TEXT)
		return failure_receive(call, header.status, body);
	if (!answers(&header, call->message))
		return fail(call, -EPROTO, "%s answers %s by type %u, status %d and %zu bytes",
			    call->path, call->message->name, (unsigned)header.type,
			    (int)header.status, body);
	call->status = header.status;
	return receive(call, &call->reply, body);
}

static int answer_receive(struct call *call)
{
	int result;

	do {
		result = message_receive(call);
		if (result || !call->message->rows || call->status == 0)
			return result;
		call->row_given = true;
		result = call->each(&call->reply, call->closure);
		call->deadline = reply_deadline(call);
	} while (!result);
	return result;
}

/* ---- attempts */

static void descriptors_close(struct call *call)
{
	while (call->fds)
		syscall(SYS_close, call->fd[--call->fds]);
	if (call->connection >= 0)
		syscall(SYS_close, call->connection);
	call->connection = -1;
}

static int attempt(struct call *call)
{
	int result;

	call->lost = false;
	result = connection_open(call);
	call->deadline = reply_deadline(call);
	if (!result)
		result = server_check(call);
	if (!result)
		result = request_send(call);
	if (!result)
		result = answer_receive(call);
	if (result)
		descriptors_close(call);
	return result;
}

/* On success the descriptors are open, and the caller closes what it does not give away. */
static int attempts(struct call *call, unsigned patience_ms)
{
	int64_t pause = PAUSE_FIRST;
	int result;

	call->patience = now() + patience_ms * MILLISECOND;
	for (;;) {
		int64_t moment;

		result = attempt(call);
		if (!result || !call->lost)
			return result;
		moment = now();
		if (moment >= call->patience)
			return result;
		moment += pause;
		wait_until(moment < call->patience ? moment : call->patience, -1, 0);
		pause = 2 * pause < PAUSE_LONGEST ? 2 * pause : PAUSE_LONGEST;
	}
}

/* ---- the interface */

int proto_socket_path(const char *chosen, char ret_path[PROTO_PATH])
{
	int saved = errno;

	if (!chosen || !chosen[0])
		chosen = access(PROTO_SERVICE_SOCKET, F_OK) == 0 ? PROTO_SERVICE_SOCKET :
								   PROTO_DEFAULT_SOCKET;
	errno = saved;
	if (strlen(chosen) >= PROTO_PATH)
		return -ENAMETOOLONG;
	strcpy(ret_path, chosen);
	return 0;
}

/* From now on reading and writing wait, and not for long. */
static bool connection_settle(int fd)
{
	const struct timeval wait = { PROTO_REPLY_MS / 1000, PROTO_REPLY_MS % 1000 * 1000 };

	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) &&
	       !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) &&
	       !fcntl(fd, F_SETFL, 0);
}

int proto_ask(const char *path, int connection, enum message type, const void *body, void *ret_body,
	      char problem[PROTO_PROBLEM])
{
	struct call call = { .path = path,
			     .message = proto_message(type),
			     .request = body,
			     .kept = true,
			     .connection = connection,
			     .problem = problem };
	int saved = errno;
	int result;

	if (!call.message || call.message->rows)
		return fail(&call, -EINVAL, "message %d is not answered by one reply", (int)type);
	call.deadline = reply_deadline(&call);
	result = request_send(&call);
	if (!result)
		result = answer_receive(&call);
	if (!result && call.message->reply)
		memcpy(ret_body, &call.reply, call.message->reply);
	errno = saved;
	return result ? result : call.status;
}

int proto_call(const char *path, enum message type, const void *body, void *ret_body,
	       struct proto_reply *ret_reply, unsigned flags, unsigned patience_ms,
	       char problem[PROTO_PROBLEM])
{
	struct call call = { .path = path,
			     .message = proto_message(type),
			     .request = body,
			     .connection = -1,
			     .problem = problem };
	int saved = errno;
	int result;

	if (!call.message || call.message->rows)
		return fail(&call, -EINVAL, "message %d is not answered by one reply", (int)type);
	result = attempts(&call, patience_ms);
	if (!result && call.message->reply)
		memcpy(ret_body, &call.reply, call.message->reply);
	if (!result && ret_reply) {
		*ret_reply = (struct proto_reply){ .status = call.status, .connection = -1 };
		for (unsigned i = 0; i < PROTO_FDS; i++)
			ret_reply->fd[i] = i < call.fds ? call.fd[i] : -1;
		call.fds = 0;
		if (flags & PROTO_KEEP_CONNECTION) {
			ret_reply->connection = call.connection;
			ret_reply->askable = connection_settle(call.connection);
			call.connection = -1;
		}
	}
	descriptors_close(&call);
	errno = saved;
	return result;
}

int proto_rows(const char *path, enum message type, const void *body, proto_row_function *each,
	       void *closure, unsigned patience_ms, char problem[PROTO_PROBLEM])
{
	struct call call = { .path = path,
			     .message = proto_message(type),
			     .request = body,
			     .each = each,
			     .closure = closure,
			     .connection = -1,
			     .problem = problem };
	const struct proto_choose *choose = body;
	int saved = errno;
	int result;

	if (!call.message || !call.message->rows)
		return fail(&call, -EINVAL, "message %d is not answered in rows", (int)type);
	call.follow = type == MESSAGE_EVENTS && choose->flags & CHOOSE_FOLLOW;
	result = attempts(&call, patience_ms);
	descriptors_close(&call);
	errno = saved;
	return result;
}
