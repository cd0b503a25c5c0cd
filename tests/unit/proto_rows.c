/* SPDX-License-Identifier: MIT */
/*
 * Replies in rows: how the client hands them over, when it repeats a request, and how it follows
 * events that come seldom.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "protoserver.h"

static void serve_no_rows(int connection, unsigned number)
{
	take_request(connection);
	give_end_of_rows(connection);
}

static void serve_three_rows(int connection, unsigned number)
{
	take_request(connection);
	for (int i = 1; i <= 3; i++)
		give_row(connection, i);
	give_end_of_rows(connection);
}

static void serve_row_and_close(int connection, unsigned number)
{
	take_request(connection);
	give_row(connection, 1);
}

static void serve_row_and_refusal(int connection, unsigned number)
{
	take_request(connection);
	give_row(connection, 1);
	give(connection, reply_failure(-ENOENT, "no such tenant", 15));
}

static void serve_row_of_one_byte(int connection, unsigned number)
{
	struct reply reply = reply_row(1);

	take_request(connection);
	reply.header.length = sizeof(reply.header) + 1;
	give(connection, reply);
}

static void serve_end_with_body(int connection, unsigned number)
{
	struct reply reply = reply_row(1);

	take_request(connection);
	reply.header.status = 0;
	give(connection, reply);
}

static void serve_row_with_wrong_status(int connection, unsigned number)
{
	struct reply reply = reply_row(1);

	take_request(connection);
	reply.header.status = PROTO_REFUSED;
	give(connection, reply);
}

static void rows(void)
{
	static const struct {
		const char *name;
		serve_function *serve;
		int stop_at, result, count;
	} replies[] = {
		{ "no rows", serve_no_rows, 0, 0, 0 },
		{ "three rows", serve_three_rows, 0, 0, 3 },
		{ "three rows, stopped at the second", serve_three_rows, 2, 7, 2 },
		{ "a row, then a closed connection", serve_row_and_close, 0, -ECONNRESET, 1 },
		{ "a row, then a refusal", serve_row_and_refusal, 0, -ENOENT, 1 },
		{ "a row of one byte", serve_row_of_one_byte, 0, -EPROTO, 0 },
		{ "an end with a body", serve_end_with_body, 0, -EPROTO, 0 },
		{ "a row with a wrong status", serve_row_with_wrong_status, 0, -EPROTO, 0 },
	};

	for (size_t i = 0; i < COUNT(replies); i++) {
		unsigned before = descriptors_open();
		struct server server;
		int count, result;

		server_start(&server, replies[i].serve);
		result = stats(replies[i].stop_at, &count);
		server_stop(&server);
		CHECK(result == replies[i].result, "%s: %d, %s", replies[i].name, result, problem);
		CHECK(count == replies[i].count, "%s: %d rows", replies[i].name, count);
		CHECK(descriptors_open() == before, "%s: a descriptor leaked", replies[i].name);
	}
}

static void serve_row_to_second(int connection, unsigned number)
{
	take_request(connection);
	if (number > 0)
		give_row(connection, 1);
}

/* The client repeats a request until it has handed over a row, and not after that. */
static void rows_lost(void)
{
	struct proto_choose choose = { 0 };
	struct rows_seen seen = { 0 };
	struct server server;

	server_start(&server, serve_row_to_second);
	CHECK(proto_rows(server_path, MESSAGE_GET_STATS, &choose, row_see, &seen, LONG_MS,
			 problem) == -ECONNRESET);
	server_stop(&server);
	CHECK(server.served == 2 && seen.count == 1, "%u connections, %d rows", server.served,
	      seen.count);
}

/* Each event comes later than the client would wait for any other row. */
static void serve_rare_events(int connection, unsigned number)
{
	struct proto_header header =
		proto_header(MESSAGE_EVENTS, PROTO_MORE, sizeof(struct proto_event));
	struct proto_event event = { 0 };

	take_request(connection);
	for (event.sequence = 1; event.sequence <= 2; event.sequence++) {
		usleep((PROTO_REPLY_MS + 50) * 1000);
		CHECK(give_bytes(connection, &header, sizeof(header)) &&
		      give_bytes(connection, &event, sizeof(event)));
	}
	wait_for_close(connection);
}

static int second_event(const void *data, void *closure)
{
	const struct proto_event *event = data;

	return event->sequence == 2;
}

static void follow(void)
{
	struct proto_choose choose = { .flags = CHOOSE_FOLLOW };
	struct server server;
	int result;

	server_start(&server, serve_rare_events);
	result = proto_rows(server_path, MESSAGE_EVENTS, &choose, second_event, NULL, 0, problem);
	server_stop(&server);
	CHECK(result == 1, "%d, %s", result, problem);
}

static void driver(void)
{
	server_path_init();
	RUN(rows);
	RUN(rows_lost);
	RUN(follow);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
