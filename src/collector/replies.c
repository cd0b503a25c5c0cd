/* SPDX-License-Identifier: MIT */
/*
 * What is sent: replies, rows and events, and how much of it may wait for a client that does
 * not read. Knows nothing of what they say.
 */
#include "collector/server_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptors.h"

enum {
	OUTPUT_MAX = 64 << 20, /* of replies that wait to be read, together */
	OUTPUT_PER_USER = OUTPUT_MAX / 4,
	SUBSCRIBERS_PER_USER = 16,
	SUBSCRIBER_MAX = 1 << 20, /* of events that wait for one subscriber */
};

static size_t output_of_user(const struct server *server, uid_t uid)
{
	const struct connection *c;
	size_t output = 0;

	TAILQ_FOREACH (c, &server->parked, link)
		if (c->peer.uid == uid)
			output += c->output_size;
	return output;
}

bool output_keep(struct connection *connection, const void *data, size_t size)
{
	size_t wanted = connection->output + size;
	struct server *server = connection->server;

	if (connection->broken || !size)
		return !connection->broken;
	if (wanted > connection->output_size) {
		size_t grown = wanted + wanted / 2;
		char *buffer =
			server->output + grown - connection->output_size > OUTPUT_MAX ||
					(connection->peer.uid &&
					 output_of_user(server, connection->peer.uid) + grown >
						 OUTPUT_PER_USER) ||
					(connection->subscribed && wanted > SUBSCRIBER_MAX) ?
				NULL :
				realloc(connection->output_buffer, grown);

		if (!buffer) {
			connection->broken = true;
			return false;
		}
		server->output += grown - connection->output_size;
		connection->output_buffer = buffer;
		connection->output_size = grown;
	}
	memcpy(connection->output_buffer + connection->output, data, size);
	connection->output += size;
	return true;
}

void output_send(struct connection *connection)
{
	while (!connection->broken && connection->output_sent < connection->output) {
		ssize_t sent = send(connection->fd,
				    connection->output_buffer + connection->output_sent,
				    connection->output - connection->output_sent, MSG_NOSIGNAL);

		if (sent > 0)
			connection->output_sent += (size_t)sent;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			connection->broken = true;
	}
	connection->output = connection->output_sent = 0;
}

bool output_waits(const struct connection *connection)
{
	return connection->output_sent < connection->output;
}

/* A message straight to the socket, with descriptors if there are any. What does not fit is
 * kept; descriptors go with the first byte. */
static void output_message(struct connection *connection, enum message type, int status,
			   const void *body, size_t size, const int *fds, unsigned fd_count)
{
	struct proto_header header = proto_header(type, status, size);
	struct iovec parts[2] = { { &header, sizeof(header) }, { (void *)body, size } };
	union descriptors control;
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = size ? 2 : 1 };
	size_t skip;
	ssize_t sent;

	header.version = connection->version;
	descriptors_attach(&message, &control, fds, fd_count);
	do
		sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno != EAGAIN || fd_count)) {
		connection->broken = true;
		return;
	}
	skip = sent < 0 ? 0 : (size_t)sent;
	for (int i = 0; i < 2; i++) {
		size_t here = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		output_keep(connection, (char *)parts[i].iov_base + here, parts[i].iov_len - here);
		skip -= here;
	}
}

void server_reply(const struct request *request, int status, const void *body, const int *fds,
		  unsigned fd_count)
{
	struct proto_bodies bodies = { 0 };

	proto_bodies(request->message->type, request->connection->version, &bodies);
	output_message(request->connection, request->message->type, status, body, bodies.reply,
		       fds, fd_count);
}

void output_fail(struct connection *connection, enum message type, int error, const char *text)
{
	output_message(connection, type, error, text, strlen(text) + 1, NULL, 0);
}

void server_fail(const struct request *request, int error, const char *format, ...)
{
	char text[PROTO_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	output_fail(request->connection, request->message->type, error, text);
}

bool server_row(const struct request *request, const void *body)
{
	struct proto_header header =
		proto_header(request->message->type, PROTO_MORE, request->message->reply);

	output_keep(request->connection, &header, sizeof(header));
	return output_keep(request->connection, body, request->message->reply);
}

void server_end(const struct request *request)
{
	struct proto_header header = proto_header(request->message->type, 0, 0);

	output_keep(request->connection, &header, sizeof(header));
	output_send(request->connection);
}

/* ---- subscribers */

/* A user has only so many subscribers: the oldest makes room. */
static void subscribers_make_room(struct server *server, uid_t uid)
{
	struct connection *oldest = NULL, *c;
	unsigned count = 0;

	TAILQ_FOREACH (c, &server->parked, link)
		if (c->subscribed && c->peer.uid == uid) {
			oldest = oldest ? oldest : c;
			count++;
		}
	if (count >= SUBSCRIBERS_PER_USER)
		connection_free(oldest);
}

void server_subscribe(const struct request *request)
{
	subscribers_make_room(request->connection->server, request->uid);
	request->connection->subscribed = true;
	output_send(request->connection);
}

/* A subscriber that does not read loses the connection, and then knows that it lost some. */
void server_publish(struct server *server, enum message type, const void *body,
		    server_filter *wants)
{
	const struct proto_message *message = proto_message(type);
	struct proto_header header = proto_header(type, PROTO_MORE, message->reply);
	struct connection *next;

	for (struct connection *c = TAILQ_FIRST(&server->parked); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->subscribed || !wants(c->input_buffer + sizeof(header), body))
			continue;
		output_keep(c, &header, sizeof(header));
		output_keep(c, body, message->reply);
		output_send(c);
		if (c->broken)
			connection_free(c);
		else
			connection_park(c, output_waits(c) ? EPOLLIN | EPOLLOUT : EPOLLIN, 0);
	}
}
