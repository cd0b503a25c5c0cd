/* SPDX-License-Identifier: MIT */
/* Calls to a collector: attempts and the interface; see client.h and call.h. */
#include "proto/client.h"

#include <errno.h>
#include <linux/time_types.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/translation.h"
#include "proto/call.h"

#define REPLY_LEAST (PROTO_REPLY_MS * MILLISECOND)
#define LOOK_UP_LEAST (PROTO_LOOK_UP_MS * MILLISECOND)
#define PAUSE_FIRST (5 * MILLISECOND)
#define PAUSE_LONGEST (50 * MILLISECOND)

int call_fail(struct call *call, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(call->problem, PROBLEM_SIZE, _(format), arguments);
	va_end(arguments);
	return error;
}

int64_t call_clock_ns(void)
{
	return (int64_t)clock_now_ns();
}

int64_t call_reply_deadline(const struct call *call)
{
	int64_t least = call_clock_ns() + (call->looks_up ? LOOK_UP_LEAST : REPLY_LEAST);

	return least > call->patience ? least : call->patience;
}

int call_wait_until(int64_t moment, int fd, short events)
{
	struct pollfd wanted = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = moment - call_clock_ns();
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

void call_close(struct call *call)
{
	while (call->fds)
		syscall(SYS_close, call->fd[--call->fds]);
	if (call->connection >= 0)
		syscall(SYS_close, call->connection);
	call->connection = -1;
}

static int call_attempt(struct call *call)
{
	int result;

	call->lost = call->older = false;
	result = connection_make(call);
	call->deadline = call_reply_deadline(call);
	if (!result)
		result = server_check(call);
	if (!result)
		result = request_send(call);
	if (!result)
		result = reply_receive(call);
	if (result)
		call_close(call);
	return result;
}

/* On success the descriptors are open, and the caller closes what it does not give away. */
static int call_attempts(struct call *call, unsigned patience_ms)
{
	int64_t pause = PAUSE_FIRST;
	int result;

	call->patience = call_clock_ns() + patience_ms * MILLISECOND;
	for (;;) {
		int64_t moment;

		result = call_attempt(call);
		if (result && call->older)
			continue; /* once: there are only so many former versions */
		if (!result || !call->lost)
			return result;
		moment = call_clock_ns();
		if (moment >= call->patience)
			return result;
		moment += pause;
		call_wait_until(moment < call->patience ? moment : call->patience, -1, 0);
		pause = 2 * pause < PAUSE_LONGEST ? 2 * pause : PAUSE_LONGEST;
	}
}

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

/* Finds the message, which must be one that is answered that way. */
static int call_check(struct call *call, enum message type, bool rows)
{
	call->message = proto_message(type);
	call->version = call->version ? call->version : PROTO_VERSION;
	if (call->message && call->message->rows == rows)
		return 0;
	return call_fail(call, -EINVAL, "message %d is not answered %s", (int)type,
			 rows ? _("in rows") : _("by one reply"));
}

int proto_ask(const char *path, int connection, unsigned version, enum message type,
	      const void *body, void *ret_body, char problem[PROBLEM_SIZE])
{
	struct call call = { .path = path,
			     .version = version,
			     .request = body,
			     .kept = true,
			     .connection = connection,
			     .problem = problem };
	int saved = errno, result = call_check(&call, type, false);

	if (result)
		return result;
	call.deadline = call_reply_deadline(&call);
	result = request_send(&call);
	if (!result) {
		result = reply_receive(&call);
		if (result == -ETIMEDOUT)
			request_withdraw(&call);
	}
	if (!result && call.message->reply)
		memcpy(ret_body, &call.reply, call.message->reply);
	errno = saved;
	return result ? result : call.status;
}

int proto_call(const char *path, enum message type, const void *body, void *ret_body,
	       struct proto_reply *ret_reply, unsigned flags, unsigned patience_ms,
	       char problem[PROBLEM_SIZE])
{
	struct call call = { .path = path,
			     .request = body,
			     .connection = -1,
			     .problem = problem };
	int saved = errno, result = call_check(&call, type, false);

	if (result)
		return result;
	call.looks_up = flags & PROTO_LOOKS_UP;
	result = call_attempts(&call, patience_ms);
	if (!result && call.message->reply)
		memcpy(ret_body, &call.reply, call.message->reply);
	if (!result && ret_reply) {
		*ret_reply = (struct proto_reply){ .status = call.status,
						   .connection = -1,
						   .version = call.version };
		for (unsigned i = 0; i < PROTO_FDS; i++)
			ret_reply->fd[i] = i < call.fds ? call.fd[i] : -1;
		call.fds = 0;
		if (flags & PROTO_KEEP_CONNECTION) {
			ret_reply->connection = call.connection;
			ret_reply->askable = connection_make_waiting(call.connection);
			call.connection = -1;
		}
	}
	call_close(&call);
	errno = saved;
	return result;
}

int proto_rows(const char *path, enum message type, const void *body, proto_row_function *each,
	       void *closure, unsigned patience_ms, char problem[PROBLEM_SIZE])
{
	struct call call = { .path = path,
			     .request = body,
			     .each = each,
			     .closure = closure,
			     .connection = -1,
			     .problem = problem };
	const struct proto_choose *choose = body;
	int saved = errno, result = call_check(&call, type, true);

	if (result)
		return result;
	call.follow = type == MESSAGE_EVENTS && choose->flags & CHOOSE_FOLLOW;
	result = call_attempts(&call, patience_ms);
	call_close(&call);
	errno = saved;
	return result;
}
