/* SPDX-License-Identifier: MIT */
/*
 * The protocol's table and headers, and its client against servers that answer
 * well, badly, slowly or not at all. Every call is also watched for what it
 * must not do: leave descriptors behind, change errno, or outstay its time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"
#include "proto/client.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SOME_ERRNO = 4242, LONG_MS = 20000, STRANGER = 65533, NOBODY = 65534 };

static char folder[] = "/tmp/proto_test.XXXXXX";
static char path[PROTO_PATH];

/* ---- the table, and headers */

static void table(void)
{
	for (unsigned i = 0; i < proto_messages_count; i++) {
		const struct proto_message *row = &proto_messages[i];
		size_t header = sizeof(struct proto_header);

		CHECK(proto_message(row->type) == row, "%s: its number is another's", row->name);
		CHECK(header + row->request <= PROTO_REQUEST_MAX, "%s", row->name);
		CHECK(header + row->reply <= PROTO_REPLY_MAX, "%s", row->name);
		CHECK(!row->rows || row->reply, "%s: rows of nothing", row->name);
		CHECK(row->request % 8 == 0 && row->reply % 8 == 0, "%s", row->name);
	}
	CHECK(!proto_message(0) && !proto_message(UINT16_MAX) && !proto_message(UINT32_MAX));
	CHECK(sizeof(struct proto_header) + PROTO_TEXT <= PROTO_REPLY_MAX);
}

/* The document has the numbers of this version. */
static void document_numbers(const char *text)
{
	char words[64];

	snprintf(words, sizeof(words), "the protocol, version %d.", PROTO_VERSION);
	CHECK(strstr(text, words), "docs/protocol.md does not say: %s", words);
	snprintf(words, sizeof(words), "of the protocol: %d |", PROTO_VERSION);
	CHECK(strstr(text, words), "docs/protocol.md does not say: %s", words);
	snprintf(words, sizeof(words), "Reply, %zu bytes,",
		 sizeof(struct proto_header) + sizeof(struct proto_pong));
	CHECK(strstr(text, words), "docs/protocol.md does not say: %s", words);
}

/* The document has each row of the table as it stands there. */
static void document(void)
{
	const char *source = getenv("SOURCE_DIRECTORY");
	static char text[65536];
	char name[512], line[256];
	unsigned rows = 0;
	FILE *file;

	source = source ? source : ".";
	snprintf(name, sizeof(name), "%s/docs/protocol.md", source);
	file = fopen(name, "re");
	if (!CHECK(file && fread(text, 1, sizeof(text) - 1, file) > 0, "%s", name))
		return;
	fclose(file);
	document_numbers(text);
	snprintf(name, sizeof(name), "%s/src/proto/messages.def", source);
	file = fopen(name, "re");
	if (!CHECK(file, "%s", name))
		return;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "MESSAGE(", 8))
			continue;
		rows++;
		line[strcspn(line, "\n")] = '\0';
		CHECK(strstr(text, line), "docs/protocol.md does not have the row %s", line);
	}
	fclose(file);
	CHECK(rows == proto_messages_count);
}

static void header_is(struct proto_header header, int result, const char *word)
{
	char problem[PROTO_PROBLEM] = "";

	CHECK(proto_check(&header, 200, problem, sizeof(problem)) == result, "%s", problem);
	CHECK(strstr(problem, word), "\"%s\" is not in \"%s\"", word, problem);
}

static struct proto_header header_of(size_t body)
{
	return proto_header(MESSAGE_NEED, PROTO_REFUSED, body);
}

static void headers(void)
{
	struct proto_header header = header_of(8);

	CHECK(header.magic == PROTO_MAGIC && !memcmp(&header, "RDMA", 4));
	CHECK(header.version == PROTO_VERSION && header.type == MESSAGE_NEED);
	CHECK(header.length == sizeof(header) + 8 && header.status == PROTO_REFUSED);
	CHECK(header.kinds == kinds_signature());
	header_is(header, 0, "");
	header_is(header_of(0), 0, "");
	header_is(header_of(200 - sizeof(header)), 0, "");
	header_is(header_of(201 - sizeof(header)), -EPROTO, "201 bytes");
	header_is(header_of(UINT32_MAX - sizeof(header)), -EPROTO, "4294967295 bytes");
	header.length = sizeof(header) - 1;
	header_is(header, -EPROTO, "23 bytes");
	header = header_of(8);
	header.type = UINT16_MAX;
	header_is(header, -EPROTO, "type 65535");
	header.kinds ^= 1;
	header_is(header, -EPROTO, "kinds");
	header.version = 7; /* of another version not even the kinds may be believed */
	header_is(header, -EPROTO, "version 7; this side speaks version 2");
	header.magic = 0x20544547;
	header_is(header, -EPROTO, "0x20544547 and not 0x414d4452");
}

/* ---- servers: a thread that hands each connection to a function */

struct server {
	void (*serve)(int connection, unsigned number);
	int listener;
	unsigned served;
	pthread_t thread;
};

static int socket_at(const char *where)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
	unlink(where);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || chmod(where, 0666))
		abort();
	return fd;
}

static void *server_loop(void *closure)
{
	struct server *server = closure;
	sigset_t all;
	int connection;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while ((connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		server->serve(connection, server->served++);
		close(connection);
	}
	return NULL;
}

static void server_start(struct server *server, void (*serve)(int connection, unsigned number))
{
	*server = (struct server){ .serve = serve, .listener = socket_at(path) };
	if (listen(server->listener, 16) ||
	    pthread_create(&server->thread, NULL, server_loop, server))
		abort();
}

static void server_stop(struct server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	unlink(path);
}

static bool take_bytes(int connection, void *buffer, size_t size)
{
	return !size || recv(connection, buffer, size, MSG_WAITALL) == (ssize_t)size;
}

static bool give_bytes(int connection, const void *buffer, size_t size)
{
	return send(connection, buffer, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Reads a request, and finds it well formed. */
static struct proto_header take(int connection)
{
	struct proto_header header;
	char body[PROTO_REQUEST_MAX], problem[PROTO_PROBLEM];
	const struct proto_message *row;

	if (!CHECK(take_bytes(connection, &header, sizeof(header))))
		return (struct proto_header){ 0 };
	CHECK(!proto_check(&header, PROTO_REQUEST_MAX, problem, sizeof(problem)), "%s", problem);
	CHECK(header.status == 0);
	row = proto_message(header.type);
	if (CHECK(row && header.length == sizeof(header) + row->request, "%u bytes", header.length))
		CHECK(take_bytes(connection, body, row->request));
	return header;
}

/* Until the client has closed: what it waits for does not come. */
static void hold(int connection)
{
	char byte;

	CHECK(recv(connection, &byte, 1, 0) == 0);
}

struct reply {
	struct proto_header header;
	union {
		struct proto_pong pong;
		struct proto_row row;
		char text[2 * PROTO_TEXT];
	};
};

static struct reply pong(void)
{
	return (struct reply){ .header = proto_header(MESSAGE_PING, 0, sizeof(struct proto_pong)),
			       .pong = { .pid = 77, .uptime_seconds = 5, .problem = "none" } };
}

static struct reply row(int number)
{
	return (struct reply){
		.header = proto_header(MESSAGE_GET_STATS, PROTO_MORE, sizeof(struct proto_row)),
		.row = { .pid = number },
	};
}

static struct reply failure(int status, const char *sentence, size_t length)
{
	struct reply reply = { .header = proto_header(MESSAGE_PING, status, length) };

	memcpy(reply.text, sentence, length);
	return reply;
}

/* As much of it as its header says. */
static bool give(int connection, struct reply reply)
{
	return give_bytes(connection, &reply, reply.header.length);
}

/* The client may have had enough already. */
static void give_row(int connection, int number)
{
	give(connection, row(number));
}

static void give_end(int connection)
{
	struct proto_header end = proto_header(MESSAGE_GET_STATS, 0, 0);

	give_bytes(connection, &end, sizeof(end));
}

/* ---- watched calls */

static unsigned descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!directory)
		abort();
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static char problem[PROTO_PROBLEM];

static int ping_with(struct proto_pong *ret_pong, struct proto_reply *ret_reply, unsigned flags,
		     unsigned patience_ms)
{
	double begin = seconds_now(), most = (patience_ms + PROTO_REPLY_MS) / 1e3;
	int result;

	errno = SOME_ERRNO;
	result = proto_call(path, MESSAGE_PING, NULL, ret_pong, ret_reply, flags, patience_ms,
			    problem);
	CHECK(errno == SOME_ERRNO);
	CHECK(seconds_now() - begin < most + 5, "%.1f s", seconds_now() - begin);
	return result;
}

static int ping(unsigned patience_ms)
{
	struct proto_reply reply = { .status = -1 };
	struct proto_pong answer = { .pid = -1 };
	int result = ping_with(&answer, &reply, 0, patience_ms);

	if (result)
		CHECK(reply.status == -1 && answer.pid == -1, "a failure changed the outputs");
	else
		CHECK(reply.status == 0 && reply.fd[0] == -1 && reply.fd[1] == -1 &&
		      reply.connection == -1 && answer.pid == 77 && answer.uptime_seconds == 5 &&
		      !strcmp(answer.problem, "none"));
	return result;
}

struct rows_seen {
	int count;
	int stop_at;
};

static int row_see(const void *data, void *closure)
{
	const struct proto_row *seen = data;
	struct rows_seen *rows = closure;

	CHECK(seen->pid == ++rows->count);
	return rows->count == rows->stop_at ? 7 : 0;
}

static int stats(int stop_at, int *ret_count)
{
	struct proto_choose choose = { .tenant = "t" };
	struct rows_seen rows = { .stop_at = stop_at };
	int result;

	errno = SOME_ERRNO;
	result = proto_rows(path, MESSAGE_GET_STATS, &choose, row_see, &rows, LONG_MS, problem);
	CHECK(errno == SOME_ERRNO);
	*ret_count = rows.count;
	return result;
}

/* ---- answers to PING */

static void well(int connection, unsigned number)
{
	take(connection);
	CHECK(give(connection, pong()));
}

static void in_pieces(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	for (size_t at = 0; at < reply.header.length; at++)
		CHECK(give_bytes(connection, (char *)&reply + at, 1));
}

static void trickling(int connection, unsigned number)
{
	struct reply reply = pong();
	size_t at = 0;

	take(connection);
	while (at < reply.header.length && give_bytes(connection, (char *)&reply + at, 1)) {
		usleep(100000);
		at++;
	}
	CHECK(at < reply.header.length, "the client waited for all of it");
}

static void silent(int connection, unsigned number)
{
	take(connection);
	hold(connection);
}

static void half_a_header(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	CHECK(give_bytes(connection, &reply, 12));
	hold(connection);
}

static void half_a_body(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	CHECK(give_bytes(connection, &reply, reply.header.length / 2));
	hold(connection);
}

static void closing(int connection, unsigned number)
{
}

static void closing_halfway(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	CHECK(give_bytes(connection, &reply, reply.header.length - 1));
}

static void refusing_unread(int connection, unsigned number)
{
	give(connection, failure(-EBUSY, "too many of you", 16));
}

/* As a collector that is killed over the first two requests and started again. */
static void at_the_third_time(int connection, unsigned number)
{
	if (number == 0)
		take(connection);
	if (number >= 2)
		well(connection, number);
}

static const struct behaviour {
	const char *name;
	void (*serve)(int connection, unsigned number);
	int result;
	const char *word; /* of the problem */
	unsigned patience_ms;
	unsigned connections; /* 0: any number */
} behaviours[] = {
	{ "good reply", well, 0, "", LONG_MS, 1 },
	{ "reply in pieces", in_pieces, 0, "", LONG_MS, 1 },
	{ "trickle", trickling, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "silence", silent, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "silence for a patient caller", silent, -ETIMEDOUT, "does not answer", 1500, 1 },
	{ "half a header", half_a_header, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "half a body", half_a_body, -ETIMEDOUT, "does not answer", 0, 1 },
	{ "early close", closing, -ECONNRESET, "closed before", 0, 1 },
	{ "early close, again and again", closing, -ECONNRESET, "closed before", 300, 0 },
	{ "close in the reply", closing_halfway, -ECONNRESET, "closed before", 0, 1 },
	{ "restart", at_the_third_time, 0, "", LONG_MS, 3 },
	{ "restart without patience", at_the_third_time, -ECONNRESET, "closed before", 0, 1 },
	{ "refusal before the request is read", refusing_unread, -EBUSY, "too many of you", LONG_MS,
	  1 },
};

static void behave(const struct behaviour *behaviour)
{
	unsigned before = descriptors();
	double begin = seconds_now();
	struct server server;
	int result;

	server_start(&server, behaviour->serve);
	problem[0] = '\0';
	result = ping(behaviour->patience_ms);
	server_stop(&server);
	CHECK(result == behaviour->result, "%s: %d, %s", behaviour->name, result, problem);
	CHECK(strstr(problem, behaviour->word), "%s: %s", behaviour->name, problem);
	CHECK(!behaviour->connections || server.served == behaviour->connections, "%s: %u",
	      behaviour->name, server.served);
	CHECK(descriptors() == before, "%s: %u descriptors, then %u", behaviour->name, before,
	      descriptors());
	if (result == -ETIMEDOUT)
		CHECK(seconds_now() - begin >= .999, "%s: gave up early", behaviour->name);
}

static struct reply prepared;

static void as_prepared(int connection, unsigned number)
{
	take(connection);
	give_bytes(connection, &prepared, sizeof(prepared));
}

static void prepared_gives(const char *name, int result, const char *word)
{
	behave(&(struct behaviour){ name, as_prepared, result, word, LONG_MS, 1 });
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
	} cases[] = {
		{ FIELD(magic), 0x78787878, "0x78787878" },
		{ FIELD(version), 9, "version 9; this side speaks version 2" },
		{ FIELD(kinds), 12, "0x000000000000000c" },
		{ FIELD(type), MESSAGE_HELLO, "answers PING by type 2" },
		{ FIELD(type), 0, "type 0, which does not exist" },
		{ FIELD(status), PROTO_MORE, "status 1" },
		{ FIELD(status), -5000, "status -5000" },
		{ FIELD(length), 0, "0 bytes" },
		{ FIELD(length), sizeof(struct proto_header), "0 bytes" },
		{ FIELD(length), PROTO_REPLY_MAX, "bytes" },
		{ FIELD(length), UINT32_MAX, "4294967295 bytes" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		prepared = pong();
		memcpy((char *)&prepared + cases[i].offset, &cases[i].value, cases[i].size);
		prepared_gives(cases[i].name, -EPROTO, cases[i].word);
	}
}

static void refusals(void)
{
	static const char sentence[PROTO_TEXT + 1];

	prepared = failure(-EACCES, "only\nan admin\x7f", 15);
	prepared_gives("control characters", -EACCES, "only an admin ");
	prepared = failure(-EACCES, "abcdefgh", 3);
	prepared_gives("no NUL", -EACCES, "abc");
	CHECK(!strcmp(problem, "abc"), "%s", problem);
	prepared = failure(-EACCES, "", 0);
	prepared_gives("no words", -EACCES, "Permission denied");
	prepared = failure(-EACCES, sentence, sizeof(sentence));
	prepared_gives("too many words", -EPROTO, "1025 bytes");
}

/* ---- rows */

static void no_rows(int connection, unsigned number)
{
	take(connection);
	give_end(connection);
}

static void three_rows(int connection, unsigned number)
{
	take(connection);
	for (int i = 1; i <= 3; i++)
		give_row(connection, i);
	give_end(connection);
}

static void row_and_close(int connection, unsigned number)
{
	take(connection);
	give_row(connection, 1);
}

static void row_and_refusal(int connection, unsigned number)
{
	take(connection);
	give_row(connection, 1);
	give(connection, failure(-ENOENT, "no such tenant", 15));
}

static void row_of_a_byte(int connection, unsigned number)
{
	struct reply reply = row(1);

	take(connection);
	reply.header.length = sizeof(reply.header) + 1;
	give(connection, reply);
}

static void end_with_a_body(int connection, unsigned number)
{
	struct reply reply = row(1);

	take(connection);
	reply.header.status = 0;
	give(connection, reply);
}

static void row_of_another_status(int connection, unsigned number)
{
	struct reply reply = row(1);

	take(connection);
	reply.header.status = PROTO_REFUSED;
	give(connection, reply);
}

static void rows(void)
{
	static const struct {
		void (*serve)(int connection, unsigned number);
		int stop_at, result, count;
	} cases[] = {
		{ no_rows, 0, 0, 0 },
		{ three_rows, 0, 0, 3 },
		{ three_rows, 2, 7, 2 },
		{ row_and_close, 0, -ECONNRESET, 1 },
		{ row_and_refusal, 0, -ENOENT, 1 },
		{ row_of_a_byte, 0, -EPROTO, 0 },
		{ end_with_a_body, 0, -EPROTO, 0 },
		{ row_of_another_status, 0, -EPROTO, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		unsigned before = descriptors();
		struct server server;
		int count, result;

		server_start(&server, cases[i].serve);
		result = stats(cases[i].stop_at, &count);
		server_stop(&server);
		CHECK(result == cases[i].result, "case %zu: %d, %s", i, result, problem);
		CHECK(count == cases[i].count, "case %zu: %d rows", i, count);
		CHECK(descriptors() == before);
	}
}

static void close_after_a_row_once(int connection, unsigned number)
{
	take(connection);
	if (number > 0)
		give_row(connection, 1);
}

/* Repeated until a row was handed over, and not after it. */
static void rows_lost(void)
{
	struct proto_choose choose = { 0 };
	struct rows_seen seen = { 0 };
	struct server server;

	server_start(&server, close_after_a_row_once);
	CHECK(proto_rows(path, MESSAGE_GET_STATS, &choose, row_see, &seen, LONG_MS, problem) ==
	      -ECONNRESET);
	server_stop(&server);
	CHECK(server.served == 2 && seen.count == 1, "%u connections, %d rows", server.served,
	      seen.count);
}

static void rare_events(int connection, unsigned number)
{
	struct proto_header header =
		proto_header(MESSAGE_EVENTS, PROTO_MORE, sizeof(struct proto_event));
	struct proto_event event = { 0 };

	take(connection);
	for (event.sequence = 1; event.sequence <= 2; event.sequence++) {
		usleep(1300000);
		CHECK(give_bytes(connection, &header, sizeof(header)) &&
		      give_bytes(connection, &event, sizeof(event)));
	}
	hold(connection);
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

	server_start(&server, rare_events);
	result = proto_rows(path, MESSAGE_EVENTS, &choose, second_event, NULL, 0, problem);
	server_stop(&server);
	CHECK(result == 1, "%d, %s", result, problem);
}

static void misuse(void)
{
	struct proto_choose choose = { 0 };

	CHECK(proto_call(path, MESSAGE_GET_STATS, &choose, NULL, NULL, 0, 0, problem) == -EINVAL);
	CHECK(proto_call(path, (enum message)999, NULL, NULL, NULL, 0, 0, problem) == -EINVAL);
	CHECK(proto_rows(path, MESSAGE_PING, &choose, row_see, NULL, 0, problem) == -EINVAL);
}

/* ---- descriptors */

enum { FDS_MOST = 250 };

static void give_with_fds(int connection, const void *buffer, size_t size, unsigned count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS_MOST * sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)buffer, size };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &(int){ STDOUT_FILENO },
		       sizeof(int));
	CHECK(sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)size);
}

static unsigned with_header, with_body;

static void well_with_fds(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	if (with_header)
		give_with_fds(connection, &reply.header, sizeof(reply.header), with_header);
	else
		give_bytes(connection, &reply.header, sizeof(reply.header));
	if (with_body)
		give_with_fds(connection, &reply.pong, sizeof(reply.pong), with_body);
	else
		give_bytes(connection, &reply.pong, sizeof(reply.pong));
}

static bool closes_on_exec(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static void passing(unsigned header_fds, unsigned body_fds, int expected)
{
	unsigned before = descriptors(), came = 0;
	struct proto_reply reply = { .fd = { -1, -1 } };
	struct proto_pong answer;
	struct server server;
	int result;

	with_header = header_fds;
	with_body = body_fds;
	server_start(&server, well_with_fds);
	result = ping_with(&answer, &reply, 0, LONG_MS);
	server_stop(&server);
	CHECK(result == expected, "%u and %u: %d, %s", header_fds, body_fds, result, problem);
	for (unsigned i = 0; i < PROTO_FDS; i++) {
		if (reply.fd[i] < 0)
			continue;
		CHECK(closes_on_exec(reply.fd[i]));
		close(reply.fd[i]);
		came++;
	}
	CHECK(came == (expected ? 0 : header_fds + body_fds), "%u came", came);
	CHECK(descriptors() == before, "%u and %u: leaked", header_fds, body_fds);
	/* Who does not want them does not get them. */
	server_start(&server, well_with_fds);
	CHECK(ping_with(&answer, NULL, PROTO_KEEP_CONNECTION, LONG_MS) == expected);
	server_stop(&server);
	CHECK(descriptors() == before, "%u and %u: leaked", header_fds, body_fds);
}

static void failing_with_fds(int connection, unsigned number)
{
	struct reply reply = failure(-EACCES, "no", 3);

	take(connection);
	give_with_fds(connection, &reply, reply.header.length, 2);
}

static void closing_with_fds(int connection, unsigned number)
{
	struct reply reply = pong();

	take(connection);
	give_with_fds(connection, &reply, reply.header.length - 1, 2);
}

static void row_with_fds(int connection, unsigned number)
{
	struct reply reply = row(1);

	take(connection);
	give_with_fds(connection, &reply, reply.header.length, 2);
	give_end(connection);
}

static struct rlimit old_limit;

static void well_with_fds_and_no_room(int connection, unsigned number)
{
	struct reply reply = pong();
	struct rlimit none = { .rlim_cur = 3, .rlim_max = old_limit.rlim_max };

	take(connection);
	setrlimit(RLIMIT_NOFILE, &none);
	give_with_fds(connection, &reply, reply.header.length, 2);
}

static void descriptors_passed(void)
{
	unsigned before = descriptors();
	struct server server;
	int count, result;

	passing(0, 0, 0);
	passing(1, 0, 0);
	passing(2, 0, 0);
	passing(0, 2, 0);
	passing(1, 1, 0);
	passing(3, 0, -EPROTO);
	passing(1, 2, -EPROTO);
	passing(2, 1, -EPROTO);
	passing(FDS_MOST, 0, -EPROTO);
	passing(0, FDS_MOST, -EPROTO);

	server_start(&server, failing_with_fds);
	CHECK(ping(LONG_MS) == -EACCES);
	server_stop(&server);
	server_start(&server, closing_with_fds);
	CHECK(ping(100) == -ECONNRESET);
	server_stop(&server);
	server_start(&server, row_with_fds);
	CHECK(stats(0, &count) == 0 && count == 1);
	server_stop(&server);

	getrlimit(RLIMIT_NOFILE, &old_limit);
	server_start(&server, well_with_fds_and_no_room);
	result = ping(LONG_MS);
	setrlimit(RLIMIT_NOFILE, &old_limit);
	server_stop(&server);
	CHECK(result == -EMFILE, "%d, %s", result, problem);
	CHECK(descriptors() == before, "leaked");
}

static void well_and_hold(int connection, unsigned number)
{
	well(connection, number);
	hold(connection);
}

/* The life line: open until we close it, and at no number that the program means. */
static void connection_kept(void)
{
	struct proto_reply reply = { .connection = -1 };
	unsigned failed = checks_failed();
	struct proto_pong answer;
	struct server server;
	char byte;
	pid_t child;
	int status;

	server_start(&server, well_and_hold);
	child = fork();
	if (child == 0) {
		close(STDIN_FILENO);
		CHECK(ping_with(&answer, &reply, PROTO_KEEP_CONNECTION, LONG_MS) == 0, "%s",
		      problem);
		CHECK(reply.connection > STDERR_FILENO && closes_on_exec(reply.connection));
		CHECK(recv(reply.connection, &byte, 1, 0) < 0 && errno == EAGAIN);
		_exit(checks_failed() == failed ? 0 : 1);
	}
	status = spawn_wait(child);
	CHECK(status == 0, "%d", status);
	server_stop(&server);
}

/* ---- nobody there, or not yet */

static void nobody(void)
{
	unsigned before = descriptors();
	double begin;
	int fd;

	unlink(path);
	CHECK(ping(0) == -ENOENT && strstr(problem, path), "%s", problem);
	begin = seconds_now();
	CHECK(ping(200) == -ENOENT);
	CHECK(seconds_now() - begin >= .2, "gave up early");
	close(socket_at(path)); /* as a killed collector leaves it */
	CHECK(ping(0) == -ECONNREFUSED && strstr(problem, path), "%s", problem);
	CHECK(ping(100) == -ECONNREFUSED);
	unlink(path);
	fd = open(path, O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	CHECK(ping(0) == -ECONNREFUSED);
	unlink(path);
	CHECK(descriptors() == before);
}

static void *start_later(void *closure)
{
	usleep(100000);
	server_start(closure, well);
	return NULL;
}

static void started_while_we_wait(bool stale_socket)
{
	struct server server;
	pthread_t starter;
	int result;

	if (stale_socket)
		close(socket_at(path));
	pthread_create(&starter, NULL, start_later, &server);
	result = ping(LONG_MS);
	pthread_join(starter, NULL);
	server_stop(&server);
	CHECK(result == 0, "%d, %s", result, problem);
}

/* Fills the queue of a listener with connections that nobody takes; returns their number. */
static unsigned queue_fill(int *waiting, unsigned most)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned count = 0;

	memcpy(address.sun_path, path, sizeof(address.sun_path));
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0 || count == most)
			abort();
		if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
			CHECK(errno == EAGAIN);
			close(fd);
			return count;
		}
		waiting[count++] = fd;
	}
}

static void well_or_gone(int connection, unsigned number)
{
	struct reply reply = pong();
	char bytes[sizeof(struct proto_header)];

	if (recv(connection, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes))
		give(connection, reply);
}

static void *take_up_later(void *closure)
{
	usleep(100000);
	return server_loop(closure);
}

static void queue_full(void)
{
	unsigned before = descriptors();
	struct server server = { .serve = well_or_gone, .listener = socket_at(path) };
	int waiting[64], result;
	unsigned count;

	if (listen(server.listener, 1))
		abort();
	count = queue_fill(waiting, COUNT(waiting));
	CHECK(ping(0) == -ETIMEDOUT && strstr(problem, "queue is full"), "%s", problem);
	CHECK(ping(100) == -ETIMEDOUT);
	while (count)
		close(waiting[--count]);
	pthread_create(&server.thread, NULL, take_up_later, &server);
	result = ping(LONG_MS);
	server_stop(&server);
	CHECK(result == 0, "%d, %s", result, problem);
	CHECK(descriptors() == before);
}

static void paths(void)
{
	char longest[PROTO_PATH], chosen[PROTO_PATH + 1], untouched[PROTO_PATH] = "as it was";
	const char *standard = access(PROTO_SERVICE_SOCKET, F_OK) ? PROTO_DEFAULT_SOCKET :
								    PROTO_SERVICE_SOCKET;

	errno = SOME_ERRNO;
	CHECK(!proto_socket_path(NULL, longest) && !strcmp(longest, standard));
	CHECK(!proto_socket_path("", longest) && !strcmp(longest, standard));
	CHECK(!proto_socket_path("/a/b", longest) && !strcmp(longest, "/a/b"));
	memset(chosen, 'x', sizeof(chosen));
	chosen[PROTO_PATH] = '\0';
	CHECK(proto_socket_path(chosen, untouched) == -ENAMETOOLONG);
	CHECK(proto_call(chosen, MESSAGE_PING, NULL, NULL, NULL, 0, LONG_MS, problem) ==
	      -ENAMETOOLONG);
	CHECK(strstr(problem, "107 characters"), "%s", problem);
	CHECK(!strcmp(untouched, "as it was"));
	chosen[PROTO_PATH - 1] = '\0';
	CHECK(!proto_socket_path(chosen, longest) && !strcmp(longest, chosen));
	CHECK(proto_call(longest, MESSAGE_PING, NULL, NULL, NULL, 0, 0, problem) == -ENOENT, "%s",
	      problem);
	CHECK(errno == SOME_ERRNO);
}

/* ---- whom we believe */

/* A server of another uid, in a child, which says how many bytes it was sent. */
static void of_another_uid(uid_t uid)
{
	char bytes[256], uid_text[24];
	int ready[2], status, result;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		abort();
	child = fork();
	if (child == 0) {
		int listener, connection;

		if (setresuid(uid, uid, uid))
			_exit(201);
		listener = socket_at(path);
		if (listen(listener, 4) || write(ready[1], "", 1) != 1)
			_exit(202);
		connection = accept(listener, NULL, NULL);
		_exit((int)recv(connection, bytes, sizeof(bytes), 0));
	}
	CHECK(read(ready[0], bytes, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	result = ping(LONG_MS);
	status = spawn_wait(child);
	CHECK(status == 0, "it was sent %d bytes", status);
	snprintf(uid_text, sizeof(uid_text), "uid %u,", (unsigned)uid);
	CHECK(result == -EPERM && strstr(problem, path) && strstr(problem, uid_text), "%d, %s",
	      result, problem);
	unlink(path);
}

static bool text_write(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* From a user namespace without the host's root, root's server is still believed. */
static void from_a_user_namespace(void)
{
	struct server server;
	int steps[2], status;
	char name[64], byte;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, steps))
		abort();
	server_start(&server, well);
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER) || write(steps[1], "", 1) != 1 ||
		    read(steps[1], &byte, 1) != 1)
			_exit(77);
		if (setresuid(1000, 1000, 1000))
			_exit(203);
		_exit(CHECK(ping(LONG_MS) == 0, "%s", problem) ? 0 : 1);
	}
	close(steps[1]);
	snprintf(name, sizeof(name), "/proc/%d/uid_map", (int)child);
	if (read(steps[0], &byte, 1) == 1 && text_write(name, "1000 65533 1"))
		CHECK(write(steps[0], "", 1) == 1);
	close(steps[0]);
	status = spawn_wait(child);
	if (status == 77)
		printf("not tried: user namespaces are not to be had\n");
	else
		CHECK(status == 0, "%d", status);
	server_stop(&server);
}

static void trust(void)
{
	if (geteuid()) {
		printf("not tried: servers of other users need root\n");
		return;
	}
	of_another_uid(STRANGER);
	of_another_uid(NOBODY);
	from_a_user_namespace();
}

/* ---- in a busy program */

static volatile sig_atomic_t alarms;

static void alarm_count(int signal)
{
	alarms++;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = alarm_count }; /* no SA_RESTART */
	struct itimerval storm = { .it_interval.tv_usec = 500, .it_value.tv_usec = 500 };
	struct itimerval calm = { 0 };

#ifdef __SANITIZE_THREAD__
	/* It runs handlers at moments of its own, and takes an errno in between for ours. */
	printf("not tried: a storm of signals under the thread sanitizer\n");
	return;
#endif
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &storm, NULL);
	for (size_t i = 0; i < COUNT(behaviours); i++)
		behave(&behaviours[i]);
	setitimer(ITIMER_REAL, &calm, NULL);
	CHECK(alarms > 100, "%d alarms", (int)alarms);
}

static int cancelled_result[2];

/* A cancellation that waits for a cancellation point finds none in a call. */
static void *call_cancelled(void *closure)
{
	struct proto_choose choose = { 0 };
	struct rows_seen seen = { 0 };
	struct proto_pong answer;

	pthread_cancel(pthread_self());
	cancelled_result[0] = proto_call(path, MESSAGE_PING, NULL, &answer, NULL, 0, 300, problem);
	cancelled_result[1] =
		proto_rows(path, MESSAGE_GET_STATS, &choose, row_see, &seen, 300, problem);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void cancelled(void)
{
	unsigned before = descriptors();
	struct server server;
	pthread_t thread;
	void *end;

	server_start(&server, at_the_third_time);
	cancelled_result[0] = cancelled_result[1] = 1;
	pthread_create(&thread, NULL, call_cancelled, NULL);
	pthread_join(thread, &end);
	server_stop(&server);
	CHECK(end != PTHREAD_CANCELED);
	CHECK(cancelled_result[0] == 0 && cancelled_result[1] == -EPROTO, "%d, %d",
	      cancelled_result[0], cancelled_result[1]);
	CHECK(descriptors() == before);
}

static void driver(void)
{
	if (!mkdtemp(folder) || chmod(folder, 0777))
		abort();
	snprintf(path, sizeof(path), "%s/collector.sock", folder);
	table();
	document();
	headers();
	for (size_t i = 0; i < COUNT(behaviours); i++)
		behave(&behaviours[i]);
	spoilt_headers();
	refusals();
	rows();
	rows_lost();
	follow();
	misuse();
	descriptors_passed();
	connection_kept();
	nobody();
	started_while_we_wait(false);
	started_while_we_wait(true);
	queue_full();
	paths();
	trust();
	cancelled();
	signals();
	CHECK(rmdir(folder) == 0, "something was left in %s", folder);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
