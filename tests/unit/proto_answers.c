/* SPDX-License-Identifier: MIT */
/*
 * The client against servers that answer well, badly, slowly or not at all: the result, the
 * sentence, how often it connects, and that no descriptor is left open. Servers that do not
 * answer take the client's whole time, so each of them gets a process of its own and all of
 * these run at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "protoserver.h"

static void serve_in_pieces(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	for (size_t at = 0; at < reply.header.length; at++)
		CHECK(give_bytes(connection, (char *)&reply + at, 1));
}

static void serve_trickle(int connection, unsigned number)
{
	struct reply reply = reply_pong();
	size_t at = 0;

	take_request(connection);
	while (at < reply.header.length && give_bytes(connection, (char *)&reply + at, 1)) {
		usleep(100000);
		at++;
	}
	CHECK(at < reply.header.length, "the client waited for the whole reply");
}

static void serve_silence(int connection, unsigned number)
{
	take_request(connection);
	wait_for_close(connection);
}

static void serve_half_header(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	CHECK(give_bytes(connection, &reply, 12));
	wait_for_close(connection);
}

static void serve_half_body(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	CHECK(give_bytes(connection, &reply, reply.header.length / 2));
	wait_for_close(connection);
}

static void serve_close(int connection, unsigned number)
{
}

static void serve_close_in_reply(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	CHECK(give_bytes(connection, &reply, reply.header.length - 1));
}

static void serve_refusal_unread(int connection, unsigned number)
{
	give(connection, reply_failure(-EBUSY, "too many of you", 16));
}

struct behaviour {
	const char *name;
	serve_function *serve;
	int result;
	const char *word; /* of the problem */
	unsigned patience_ms;
	unsigned connections; /* 0: any number */
};

static const struct behaviour quick[] = {
	{ "good reply", serve_pong, 0, "", LONG_MS, 1 },
	{ "reply in pieces", serve_in_pieces, 0, "", LONG_MS, 1 },
	{ "early close", serve_close, -ECONNRESET, "closed before", 0, 1 },
	{ "early close, again and again", serve_close, -ECONNRESET, "closed before", 300, 0 },
	{ "close in the reply", serve_close_in_reply, -ECONNRESET, "closed before", 0, 1 },
	{ "restart", serve_third_connection, 0, "", LONG_MS, 3 },
	{ "restart without patience", serve_third_connection, -ECONNRESET, "closed before", 0, 1 },
	{ "refusal before the request is read", serve_refusal_unread, -EBUSY, "too many of you",
	  LONG_MS, 1 },
};

static const struct behaviour slow[] = {
	{ "trickle", serve_trickle, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "silence", serve_silence, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "silence for a patient caller", serve_silence, -ETIMEDOUT, "does not answer", 1500, 1 },
	{ "half a header", serve_half_header, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "half a body", serve_half_body, -ETIMEDOUT, "does not answer", 0, 1 },
};

/* What a server that took the connection gets to answer. */
static double time_to_answer(const struct behaviour *behaviour)
{
	unsigned ms = behaviour->patience_ms > PROTO_REPLY_MS ? behaviour->patience_ms :
								PROTO_REPLY_MS;

	return ms / 1e3;
}

static void behave(const struct behaviour *behaviour)
{
	unsigned before = descriptors_open();
	double begin, took;
	struct server server;
	int result;

	server_start(&server, behaviour->serve);
	problem[0] = '\0';
	begin = seconds_now();
	result = ping(behaviour->patience_ms);
	took = seconds_now() - begin;
	server_stop(&server);
	CHECK(result == behaviour->result, "%s: %d, %s", behaviour->name, result, problem);
	CHECK(strstr(problem, behaviour->word), "%s: %s", behaviour->name, problem);
	CHECK(!behaviour->connections || server.served == behaviour->connections,
	      "%s: %u connections", behaviour->name, server.served);
	CHECK(descriptors_open() == before, "%s: %u descriptors, then %u", behaviour->name, before,
	      descriptors_open());
	if (behaviour->result == -ETIMEDOUT) {
		CHECK(took >= time_to_answer(behaviour) - .001, "%s: gave up after %.3f s",
		      behaviour->name, took);
		printf("%s: %.3f s\n", behaviour->name, took);
	}
}

static void quick_servers(void)
{
	for (size_t i = 0; i < COUNT(quick); i++)
		behave(&quick[i]);
}

/* prepare: in each child, before its call. */
static void slow_servers_with(void (*prepare)(void), void (*finish)(void))
{
	pid_t children[COUNT(slow)];
	unsigned failed = checks_failed();

	for (size_t i = 0; i < COUNT(slow); i++) {
		children[i] = family_fork();
		if (children[i])
			continue;
		server_path_number(1 + (unsigned)i);
		prepare();
		behave(&slow[i]);
		finish();
		fflush(stdout);
		_exit(checks_failed() == failed ? 0 : 1);
	}
	for (size_t i = 0; i < COUNT(slow); i++)
		CHECK(spawn_wait(children[i]) == 0, "%s", slow[i].name);
}

static void nothing(void)
{
}

static void slow_servers(void)
{
	slow_servers_with(nothing, nothing);
}

/* ---- the same under a storm of signals */

#ifdef __SANITIZE_THREAD__
/* It delays signal handlers, and a handler that it runs changes errno between the call's end and
 * our check. */
static void under_signals(void)
{
	skip_part("a storm of signals under the thread sanitizer");
}
#else
static volatile sig_atomic_t alarms;

static void alarm_count(int signal)
{
	alarms++;
}

static void alarms_start(void)
{
	struct sigaction action = { .sa_handler = alarm_count }; /* no SA_RESTART */
	struct itimerval often = { .it_interval.tv_usec = 500, .it_value.tv_usec = 500 };

	alarms = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void alarms_stop(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	CHECK(alarms > 10, "%d alarms", (int)alarms);
}

static void under_signals(void)
{
	alarms_start();
	quick_servers();
	alarms_stop();
	slow_servers_with(alarms_start, alarms_stop);
}
#endif

/* ---- replies with one mistake */

static struct reply prepared;

static void serve_prepared(int connection, unsigned number)
{
	take_request(connection);
	give_bytes(connection, &prepared, sizeof(prepared));
}

static void prepared_gives(const char *name, int result, const char *word)
{
	behave(&(struct behaviour){ name, serve_prepared, result, word, LONG_MS, 1 });
}

/* Good replies but for one field of their header. */
static void spoilt_headers(void)
{
#define FIELD(name) #name, offsetof(struct proto_header, name), sizeof(prepared.header.name)
	static const struct {
		const char *name;
		size_t offset, size;
		int64_t value;
		const char *word;
	} fields[] = {
		{ FIELD(magic), 0x78787878, "0x78787878" },
		{ FIELD(version), 9, "version 9; this side speaks version 8" },
		{ FIELD(kinds), 12, "0x000000000000000c" },
		{ FIELD(type), MESSAGE_HELLO, "invalid answer to STATUS: type 2" },
		{ FIELD(type), 0, "unknown type 0" },
		{ FIELD(status), PROTO_MORE, "status 1" },
		{ FIELD(status), -5000, "status -5000" },
		{ FIELD(length), 0, "0 bytes" },
		{ FIELD(length), sizeof(struct proto_header), "0 bytes" },
		{ FIELD(length), PROTO_REPLY_MAX, "bytes" },
		{ FIELD(length), UINT32_MAX, "4294967295 bytes" },
	};

	for (size_t i = 0; i < COUNT(fields); i++) {
		prepared = reply_pong();
		memcpy((char *)&prepared + fields[i].offset, &fields[i].value, fields[i].size);
		prepared_gives(fields[i].name, -EPROTO, fields[i].word);
	}
}

static void refusals(void)
{
	static const char sentence[PROTO_TEXT + 1];

	prepared = reply_failure(-EACCES, "only\nan admin\x7f", 15);
	prepared_gives("control characters", -EACCES, "only an admin ");
	prepared = reply_failure(-EACCES, "abcdefgh", 3);
	prepared_gives("sentence without NUL", -EACCES, "abc");
	CHECK(!strcmp(problem, "abc"), "%s", problem);
	prepared = reply_failure(-EACCES, "", 0);
	prepared_gives("no sentence", -EACCES, "Permission denied");
	prepared = reply_failure(-EACCES, sentence, sizeof(sentence));
	prepared_gives("sentence that is too long", -EPROTO, "1025 bytes");
}

static void driver(void)
{
	server_path_init();
	RUN(quick_servers);
	RUN(slow_servers);
	RUN(spoilt_headers);
	RUN(refusals);
	RUN(under_signals);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
