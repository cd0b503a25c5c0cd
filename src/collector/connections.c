/* SPDX-License-Identifier: MIT */
/*
 * Connections: what they say, and where they wait until they have said it, or have read the
 * reply. Knows neither requests nor whose turn it is.
 */
#include "collector/server_parts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/identity.h"

enum {
	PARKED_PER_USER = 256, /* connections that have not said all, or not read all */
	DEADLINE_SECONDS = 2,  /* for a whole request */
	READING_SECONDS = 10,  /* for a reply to be read */
};

void connection_add(struct connection_list *list, struct connection *connection)
{
	TAILQ_INSERT_TAIL(list, connection, link);
	connection->list = list;
}

void connection_remove(struct connection *connection)
{
	TAILQ_REMOVE(connection->list, connection, link);
	connection->list = NULL;
}

void connection_unpark(struct connection *connection)
{
	line_leave(connection);
	if (!connection->parked)
		return;
	epoll_ctl(connection->server->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
	connection_remove(connection);
	connection->parked = false;
	/* What was found of it together with others is void. */
	for (int i = 0; i < connection->server->found_count; i++)
		if (connection->server->found[i].data.ptr == connection)
			connection->server->found[i].data.ptr = NULL;
}

struct connection *connection_new(struct server *server, int fd, const struct ucred *peer)
{
	struct connection *connection = malloc(sizeof(*connection));

	if (!connection)
		return NULL;
	memset(connection, 0, offsetof(struct connection, input_buffer));
	connection->server = server;
	connection->fd = fd;
	connection->peer = *peer;
	if (!server->knows_peers)
		connection->start = identity_start(connection->peer.pid);
	return connection;
}

void connection_free(struct connection *connection)
{
	connection_unpark(connection);
	connection->server->output -= connection->output_size;
	free(connection->output_buffer);
	if (connection->fd >= 0)
		close(connection->fd);
	free(connection);
}

/* ---- waiting */

static int parked_expire(sd_event_source *source, uint64_t now, void *closure)
{
	struct server *server = closure;
	uint64_t seconds = clock_now_seconds();
	struct connection *next;

	for (struct connection *c = TAILQ_FIRST(&server->parked); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->deadline && c->deadline <= seconds)
			connection_free(c);
	}
	if (TAILQ_EMPTY(&server->parked))
		return sd_event_source_set_enabled(source, SD_EVENT_OFF);
	sd_event_source_set_time_relative(source, 1000000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* A user has only so many connections that wait: the oldest makes room. */
static void parked_make_room(struct server *server, uid_t uid)
{
	struct connection *oldest = NULL, *c;
	unsigned count = 0;

	TAILQ_FOREACH (c, &server->parked, link)
		if (c->peer.uid == uid && c->deadline) {
			oldest = oldest ? oldest : c;
			count++;
		}
	if (count >= PARKED_PER_USER)
		connection_free(oldest);
}

void connection_park(struct connection *connection, uint32_t events, uint64_t seconds)
{
	struct server *server = connection->server;
	struct epoll_event event = { .events = events, .data.ptr = connection };

	connection->deadline = seconds ? clock_now_seconds() + seconds + 1 : 0;
	if (connection->parked) {
		epoll_ctl(server->epoll, EPOLL_CTL_MOD, connection->fd, &event);
		return;
	}
	parked_make_room(server, connection->peer.uid);
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, connection->fd, &event)) {
		connection_free(connection);
		return;
	}
	connection->parked = true;
	connection_add(&server->parked, connection);
	/* Who comes now must not move the time of those who wait. */
	if (sd_event_source_get_enabled(server->timer, NULL) > 0)
		return;
	sd_event_source_set_time_relative(server->timer, 1000000);
	sd_event_source_set_enabled(server->timer, SD_EVENT_ONESHOT);
}

/* Waits for the next request, however long. Apart from those that are parked, which are few. */
static void connection_await_next(struct connection *connection)
{
	struct server *server = connection->server;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };

	connection_unpark(connection);
	connection->input = 0;
	connection->ticket = 0;
	connection->deadline = 0;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, connection->fd, &event)) {
		connection_free(connection);
		return;
	}
	connection->parked = true;
	connection_add(&server->kept, connection);
}

/* ---- receiving */

/* Whether the header, as far as it is there, begins a request that we know. */
static int header_check(const struct proto_header *header, char problem[PROBLEM_SIZE])
{
	struct proto_bodies bodies = { 0 };
	int result = proto_check(header, PROTO_REQUEST_MAX, problem);

	if (result < 0)
		return result;
	proto_bodies(header->type, header->version, &bodies);
	if (header->length == sizeof(*header) + bodies.request)
		return 0;
	return problem_set(-EPROTO, problem, "%s of %u bytes, not %zu",
			   proto_message(header->type)->name, header->length,
			   sizeof(*header) + bodies.request);
}

/* Whether somebody types, or sends HTTP: the bytes so far differ from the first of every message, and
 * all are text. */
static bool input_is_text(const struct connection *connection)
{
	static const uint32_t magic = PROTO_MAGIC;
	size_t compared = connection->input < sizeof(magic) ? connection->input : sizeof(magic);

	if (!memcmp(connection->input_buffer, &magic, compared))
		return false;
	for (size_t i = 0; i < connection->input && i < sizeof(struct proto_header); i++) {
		unsigned char byte = (unsigned char)connection->input_buffer[i];

		if ((byte < ' ' || byte > '~') && !memchr("\t\r\n", byte, 3))
			return false;
	}
	return true;
}

static void text_answer(struct connection *connection)
{
	char line[320];

	snprintf(line, sizeof(line),
		 "This is the socket of the rdma_intercept collector. It speaks a binary protocol, "
		 "version %d (docs/protocol.md), not text or HTTP: use the command rdma_intercept, such as "
		 "'rdma_intercept status', or rdma_dashboard for HTTP and metrics.\n",
		 PROTO_VERSION);
	connection->kept = false;
	if (output_keep(connection, line, strlen(line)))
		output_send(connection);
}

/* Reads what is there. DONE: answered, for better or worse. */
enum progress connection_receive(struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;
	char problem[PROBLEM_SIZE];

	for (;;) {
		ssize_t size = recv(connection->fd, connection->input_buffer + connection->input,
				    sizeof(connection->input_buffer) - connection->input, 0);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			return PROGRESS_WAIT;
		if (size <= 0) {
			connection->broken = true;
			return PROGRESS_DONE;
		}
		connection->input += (size_t)size;
		if (input_is_text(connection)) {
			text_answer(connection);
			return PROGRESS_DONE;
		}
		if (connection->input < sizeof(*header))
			continue;
		/* Who speaks neither our version nor one that we know is told ours. */
		connection->version = PROTO_VERSION;
		if (header_check(header, problem) < 0) {
			if (proto_is_foreign(header))
				log_seldom(connection->server->log, &connection->server->foreign,
					   LOG_WARN,
					   "process %d sends %s; restart it, after an update",
					   (int)connection->peer.pid, problem);
			connection->kept = false;
			output_fail(connection, header->type, -EPROTO, problem);
			return PROGRESS_DONE;
		}
		connection->version = header->version;
		if (connection->input > header->length) {
			connection->kept = false;
			output_fail(connection, header->type, -EPROTO, "more than one request");
			return PROGRESS_DONE;
		}
		if (connection->input == header->length)
			return PROGRESS_READY;
	}
}

/* After a step: waits for more, or is done with the connection. */
void connection_settle(struct connection *connection, enum progress progress)
{
	if (connection->broken) {
		connection_free(connection);
		return;
	}
	if (progress == PROGRESS_READY) {
		line_join(connection);
	} else if (progress == PROGRESS_WAIT) {
		/* A trickle does not move the deadline. */
		if (!connection->parked)
			connection_park(connection, EPOLLIN, DEADLINE_SECONDS);
	} else if (connection->subscribed) {
		connection_park(connection, output_waits(connection) ? EPOLLIN | EPOLLOUT : EPOLLIN,
				0);
	} else if (output_waits(connection)) {
		connection_park(connection, EPOLLOUT, READING_SECONDS);
	} else if (connection->kept) {
		connection_await_next(connection);
	} else {
		connection_free(connection);
	}
}

/* ---- what epoll tells */

/* A subscriber has nothing more to say: what comes from it is its end. */
static void subscriber_ready(struct connection *connection, uint32_t events)
{
	output_send(connection);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		connection->broken = true;
	connection_settle(connection, PROGRESS_DONE);
}

static void connection_ready(struct connection *connection, uint32_t events)
{
	if (connection->subscribed) {
		subscriber_ready(connection, events);
	} else if (output_waits(connection)) {
		size_t before = connection->output_sent;

		output_send(connection);
		if (connection->output_sent == before && (events & (EPOLLHUP | EPOLLERR)))
			connection->broken = true;
		connection_settle(connection, PROGRESS_DONE);
	} else {
		connection_settle(connection, connection_receive(connection));
	}
}

static int connections_ready(sd_event_source *source, int fd, uint32_t events, void *closure)
{
	struct server *server = closure;

	server->found_count = epoll_wait(server->epoll, server->found, SERVER_EVENTS, 0);
	for (int i = 0; i < server->found_count; i++)
		if (server->found[i].data.ptr)
			connection_ready(server->found[i].data.ptr, server->found[i].events);
	server->found_count = 0;
	return 0;
}

int connections_open(struct server *server)
{
	int result;

	TAILQ_INIT(&server->parked);
	TAILQ_INIT(&server->kept);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	result = sd_event_add_io(server->event, &server->ready, server->epoll, EPOLLIN,
				 connections_ready, server);
	if (result >= 0)
		result = sd_event_add_time_relative(server->event, &server->timer, CLOCK_MONOTONIC,
						    0, 0, parked_expire, server);
	if (result >= 0)
		result = sd_event_source_set_enabled(server->timer, SD_EVENT_OFF);
	return result;
}

void connection_list_free(struct connection_list *list)
{
	while (!TAILQ_EMPTY(list))
		connection_free(TAILQ_FIRST(list));
}

void connections_close(struct server *server)
{
	connection_list_free(&server->parked);
	connection_list_free(&server->kept);
	sd_event_source_disable_unref(server->timer);
	sd_event_source_disable_unref(server->ready);
	if (server->epoll >= 0)
		close(server->epoll);
}
