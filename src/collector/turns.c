/* SPDX-License-Identifier: MIT */
/*
 * Turns: of the users with requests waiting, the collector serves next the one on whose
 * requests it has spent the least time. A user who sends many or expensive requests delays only
 * itself.
 */
#include "collector/server_parts.h"

#include <string.h>

#include "base/clock.h"

enum {
	HELD_PER_USER = 256, /* requests that wait for server_resume */
	TURN_US = 1000,	     /* of answering, before new clients are looked at */
};

struct line *line_of_user(struct server *server, uid_t uid)
{
	return &server->line[uid % SERVER_LINES];
}

static struct line *line_of(const struct connection *connection)
{
	return line_of_user(connection->server, connection->peer.uid);
}

/* Who comes anew has no credit from the time of its absence. */
static void line_list(struct server *server, struct line *line)
{
	if (line->spent_ns < server->spent_ns)
		line->spent_ns = server->spent_ns;
	if (line->listed)
		return;
	line->listed = true;
	line->next = server->lines;
	server->lines = line;
}

/* A timer that is due at once, since the loop would run a deferred source before all others as
 * long as it is on; so the listener has its turn in between. */
static void turn_await(struct server *server)
{
	if (sd_event_source_get_enabled(server->turn, NULL) > 0)
		return;
	sd_event_source_set_time_relative(server->turn, 0);
	sd_event_source_set_enabled(server->turn, SD_EVENT_ONESHOT);
}

void line_join(struct connection *connection)
{
	struct server *server = connection->server;
	struct line *line = line_of(connection);

	connection_unpark(connection);
	/* A kept connection stays: a member has one, and one request on it. */
	if (line->count >= LINE_MOST && !connection->kept) {
		connection_free(connection);
		return;
	}
	if (!line->count++)
		line_list(server, line);
	connection_add(&line->ready, connection);
	connection->ready = true;
	turn_await(server);
}

void line_leave(struct connection *connection)
{
	if (connection->ready) {
		connection_remove(connection);
		line_of(connection)->count--;
		connection->ready = false;
	}
	if (connection->held) {
		connection_remove(connection);
		line_of(connection)->held--;
		connection->held = false;
	}
}

/* ---- requests that wait */

bool server_hold(const struct request *request, uint64_t ticket)
{
	struct connection *connection = request->connection;
	struct line *line = line_of(connection);

	if (line->held == HELD_PER_USER)
		return false;
	line->held++;
	connection->held = true;
	connection->ticket = ticket;
	connection_add(&connection->server->held, connection);
	return true;
}

void server_resume(struct server *server)
{
	while (!TAILQ_EMPTY(&server->held))
		line_join(TAILQ_FIRST(&server->held));
}

/* ---- a turn */

/* One whole request is there. */
static void request_answer(struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;
	const struct proto_message *message = proto_message(header->type);
	size_t whole = sizeof(*header) + message->request;
	struct request request = {
		.connection = connection,
		.message = message,
		.body = header + 1,
		.pid = connection->peer.pid,
		.uid = connection->peer.uid,
		.gid = connection->peer.gid,
		.start = connection->start,
		.fd = connection->fd,
		.ticket = connection->ticket,
	};

	/* What a former version of the protocol does not say is 0. */
	memset(connection->input_buffer + header->length, 0, whole - header->length);
	connection->server->answer(connection->server->closure, &request);
}

/* A client that has closed the connection, or has sent more after its request, gets no answer. */
static bool request_is_withdrawn(const struct connection *connection)
{
	char byte;

	return recv(connection->fd, &byte, sizeof(byte), MSG_PEEK) >= 0;
}

/* Whether its request is there already: it was held. */
static bool request_is_complete(const struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;

	return connection->input >= sizeof(*header) && connection->input == header->length;
}

static void connection_serve(struct connection *connection)
{
	enum progress progress = request_is_complete(connection) ? PROGRESS_READY :
								   connection_receive(connection);

	if (progress == PROGRESS_READY) {
		if (request_is_withdrawn(connection))
			connection->broken = true;
		else
			request_answer(connection);
		progress = PROGRESS_DONE;
	}
	if (!connection->held)
		connection_settle(connection, progress);
}

/* The line that has its turn; those that became empty leave. */
static struct line *line_choose(struct server *server)
{
	struct line **link = &server->lines, *chosen = NULL;

	while (*link) {
		if (!(*link)->count) {
			(*link)->listed = false;
			*link = (*link)->next;
			continue;
		}
		if (!chosen || (*link)->spent_ns < chosen->spent_ns)
			chosen = *link;
		link = &(*link)->next;
	}
	return chosen;
}

static int turns_take(sd_event_source *source, uint64_t time, void *closure)
{
	struct server *server = closure;
	uint64_t begun = clock_now_ns(), until = begun + TURN_US * 1000u, now = begun;
	struct line *line = NULL;

	while (now < until && (line = line_choose(server))) {
		struct connection *connection = TAILQ_FIRST(&line->ready);

		server->spent_ns = line->spent_ns;
		connection_unpark(connection);
		connection_serve(connection);
		now = clock_now_ns();
		line->spent_ns += now - begun;
		begun = now;
	}
	if (line)
		turn_await(server);
	return 0;
}

int turns_open(struct server *server)
{
	int result = sd_event_add_time_relative(server->event, &server->turn, CLOCK_MONOTONIC, 0, 1,
						turns_take, server);

	TAILQ_INIT(&server->held);
	for (struct line *line = server->line; line < server->line + SERVER_LINES; line++)
		TAILQ_INIT(&line->ready);
	if (result >= 0)
		result = sd_event_source_set_enabled(server->turn, SD_EVENT_OFF);
	return result;
}

void turns_close(struct server *server)
{
	connection_list_free(&server->held);
	for (struct line *line = server->line; line < server->line + SERVER_LINES; line++)
		connection_list_free(&line->ready);
	sd_event_source_disable_unref(server->turn);
}
