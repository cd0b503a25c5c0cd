/* SPDX-License-Identifier: MIT */
/*
 * The request and the reply of a call; see call.h. Knows how messages travel, not what they mean.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/output.h"
#include "proto/call.h"

#define FOREVER INT64_MAX

/* The way out of two versions. */
#define RESTART "; after an update, restart the collector and the programs that use it"

enum { ERRNO_MOST = 4095 }; /* as the kernel has it: what is below -4095 is no -errno */

union any_request {
#define MESSAGE(name, number, request, reply, who, how) struct proto_##request name;
#include "proto/messages.def"
#undef MESSAGE
};

static int call_wait_for_server(struct call *call, short events)
{
	int result = call_wait_until(call->deadline, call->connection, events);

	if (result == -ETIMEDOUT)
		return call_fail(call, result, "the collector at %s does not answer", call->path);
	if (result < 0)
		return call_fail(call, result, "waiting for %s: %s", call->path, strerror(-result));
	return 0;
}

/* Its own buffer takes a whole request, unless the server has left earlier ones unread. */
static int request_send_kept(struct call *call, const void *whole, size_t length)
{
	ssize_t sent = output_write(call->connection, whole, length);

	if (sent == (ssize_t)length)
		return 0;
	if (sent >= 0 || sent == -EAGAIN)
		return call_fail(call, -ETIMEDOUT, "the collector at %s does not read", call->path);
	return call_fail(call, sent == -EPIPE ? -ECONNRESET : (int)sent, "sending to %s: %s",
			 call->path, strerror((int)-sent));
}

int request_send(struct call *call)
{
	struct {
		struct proto_header header;
		union any_request body;
	} whole;
	struct proto_bodies bodies;
	size_t sent = 0;

	if (!proto_bodies(call->message->type, call->version, &bodies))
		return call_fail(call, -EPROTO, "%s has no form in protocol version %u",
				 call->message->name, call->version);
	whole.header = proto_header(call->message->type, 0, bodies.request);
	whole.header.version = (uint16_t)call->version;
	if (call->message->request)
		memcpy(&whole.body, call->request, call->message->request);
	if (call->kept)
		return request_send_kept(call, &whole, whole.header.length);
	while (sent < whole.header.length) {
		ssize_t part = syscall(SYS_sendto, call->connection, (char *)&whole + sent,
				       whole.header.length - sent, MSG_NOSIGNAL, NULL, 0);
		int result = 0;

		if (part >= 0)
			sent += (size_t)part;
		else if (errno == EPIPE || errno == ECONNRESET)
			return 0; /* closed without reading: why may be there to be read */
		else if (errno == EAGAIN)
			result = call_wait_for_server(call, POLLOUT);
		else if (errno != EINTR)
			result = call_fail(call, -errno, "sending to %s: %s", call->path,
					   strerror(errno));
		if (result)
			return result;
	}
	return 0;
}

/* A byte after a request makes the server drop it. Otherwise the server would carry it out whenever
 * it comes to it, and record an outcome that this side did not wait for. */
void request_withdraw(const struct call *call)
{
	output_write(call->connection, "", 1);
}

/* Takes the descriptors that came with some bytes, or closes those that are too many. */
static int reply_take_descriptors(struct call *call, struct msghdr *message)
{
	if (!descriptors_take(message, call->fd, &call->fds))
		return 0;
	/* The kernel drops what has no room: in our buffer, or in the table of this process. */
	if (call->fds < PROTO_FDS)
		return call_fail(call, -EMFILE, "no room for the descriptors that %s sent: %s",
				 call->path, strerror(EMFILE));
	return call_fail(call, -EPROTO, "%s sent more than %d descriptors", call->path, PROTO_FDS);
}

static int reply_receive_bytes(struct call *call, void *buffer, size_t size)
{
	size_t got = 0;

	while (got < size) {
		union descriptors control;
		struct iovec rest = { (char *)buffer + got, size - got };
		struct msghdr message = { .msg_iov = &rest, .msg_iovlen = 1 };
		int result = 0;
		ssize_t part;

		descriptors_expect(&message, &control);
		part = call->kept ?
			       syscall(SYS_read, call->connection, rest.iov_base, rest.iov_len) :
			       syscall(SYS_recvmsg, call->connection, &message, MSG_CMSG_CLOEXEC);
		if (part > 0) {
			got += (size_t)part;
			if (!call->kept)
				result = reply_take_descriptors(call, &message);
		} else if (part == 0 || errno == ECONNRESET) {
			/* Rows that were given out cannot be taken back. */
			call->lost = !call->row_given;
			result = call_fail(call, -ECONNRESET,
					   "the collector at %s closed before its reply ended",
					   call->path);
		} else if (call->kept && (errno == EAGAIN || errno == EINTR)) {
			/* It has waited; a signal does not make it wait longer. */
			if (errno == EAGAIN || call_clock_ns() >= call->deadline)
				result = call_fail(call, -ETIMEDOUT,
						   "the collector at %s does not answer",
						   call->path);
		} else if (errno == EAGAIN) {
			result = call_wait_for_server(call, POLLIN);
		} else if (errno != EINTR) {
			result = call_fail(call, -errno, "receiving from %s: %s", call->path,
					   strerror(errno));
		}
		if (result)
			return result;
	}
	return 0;
}

/* The collector's own words, fit for one line of a log. */
static int reply_receive_failure(struct call *call, int status, size_t length)
{
	char *text = call->reply.sentence;
	int result = reply_receive_bytes(call, text, length);

	if (result)
		return result;
	length = strnlen(text, length);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
			text[i] = ' ';
	if (!length)
		return call_fail(call, status, "the collector at %s: %s", call->path,
				 strerror(-status));
	/* It speaks this version of the protocol, and not this message. */
	if (status == -EPROTO)
		return call_fail(call, status,
				 "the collector at %s does not understand %s (%.*s)" RESTART,
				 call->path, call->message->name, (int)length, text);
	return call_fail(call, status, "%.*s", (int)length, text);
}

static bool reply_fits_request(const struct proto_header *header, const struct call *call)
{
	size_t body = header->length - sizeof(*header);
	struct proto_bodies bodies;

	if (header->type != call->message->type || header->status < 0 ||
	    header->version != call->version ||
	    !proto_bodies(header->type, header->version, &bodies))
		return false;
	if (!call->message->rows)
		return header->status != PROTO_MORE && body == bodies.reply;
	return header->status == PROTO_MORE ? body == bodies.reply : !header->status && !body;
}

/* A collector of a former version has refused the request for its version. Over a kept connection
 * that cannot be: it was made in the version of the collector. */
static bool reply_is_of_older(const struct call *call, const struct proto_header *header)
{
	return header->status == -EPROTO && header->type == call->message->type && !call->kept &&
	       header->version < call->version;
}

/* One message of the reply, into call->status and call->reply. */
static int reply_receive_message(struct call *call)
{
	char problem[PROBLEM_SIZE];
	struct proto_header header;
	size_t body;
	int result;

	if (call->follow) {
		result = call_wait_until(FOREVER, call->connection, POLLIN);
		if (result)
			return call_fail(call, result, "waiting for %s: %s", call->path,
					 strerror(-result));
		call->deadline = call_reply_deadline(call);
	}
	result = reply_receive_bytes(call, &header, sizeof(header));
	if (result)
		return result;
	result = proto_check(&header, PROTO_REPLY_MAX, problem);
	if (result)
		return call_fail(call, result, "the server at %s sent %s%s", call->path,
				 problem, proto_is_foreign(&header) ? RESTART : "");
	body = header.length - sizeof(header);
	if (reply_is_of_older(call, &header)) {
		call->older = true;
		call->version = header.version;
	}
	if (header.status < 0 && header.status >= -ERRNO_MOST && body <= PROTO_TEXT)
		return reply_receive_failure(call, header.status, body);
	if (!reply_fits_request(&header, call))
		return call_fail(call, -EPROTO, "%s sent an invalid answer to %s: type %u, status %d, %zu bytes",
				 call->path, call->message->name, (unsigned)header.type,
				 (int)header.status, body);
	call->status = header.status;
	memset(&call->reply, 0, call->message->reply); /* a former version may say less */
	return reply_receive_bytes(call, &call->reply, body);
}

int reply_receive(struct call *call)
{
	int result;

	do {
		result = reply_receive_message(call);
		if (result || !call->message->rows || call->status == 0)
			return result;
		call->row_given = true;
		result = call->each(&call->reply, call->closure);
		call->deadline = call_reply_deadline(call);
	} while (!result);
	return result;
}
