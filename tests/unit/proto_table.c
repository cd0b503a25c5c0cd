/* SPDX-License-Identifier: MIT */
/*
 * The protocol without a connection: the table of messages and the document that repeats it,
 * the checks of a header, the choice of the socket's path, and calls that the client rejects.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "protoserver.h"

static void table(void)
{
	for (unsigned i = 0; i < proto_messages_count; i++) {
		const struct proto_message *row = &proto_messages[i];
		size_t header = sizeof(struct proto_header);

		CHECK(proto_message(row->type) == row, "%s: two messages have its number", row->name);
		CHECK(header + row->request <= PROTO_REQUEST_MAX, "%s", row->name);
		CHECK(header + row->reply <= PROTO_REPLY_MAX, "%s", row->name);
		CHECK(!row->rows || row->reply, "%s: its rows have no size", row->name);
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
		 sizeof(struct proto_header) + sizeof(struct proto_status));
	CHECK(strstr(text, words), "docs/protocol.md does not say: %s", words);
}

/* The document repeats each row of the table word for word. */
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

static void header_check_gives(struct proto_header header, int result, const char *word)
{
	char sentence[PROBLEM_SIZE] = "";

	CHECK(proto_check(&header, 200, sentence) == result, "%s", sentence);
	CHECK(strstr(sentence, word), "\"%s\" is not in \"%s\"", word, sentence);
}

static struct proto_header header_of(size_t body)
{
	return proto_header(MESSAGE_GROW, PROTO_REFUSED, body);
}

/* Library and collector understand each other over an update; nothing else does. */
static void former_versions(void)
{
	struct proto_header header = header_of(8);
	struct proto_bodies bodies = { 0 };

	CHECK(proto_bodies(MESSAGE_GROW, 6, &bodies) && bodies.reply == 64 &&
	      bodies.request == sizeof(struct proto_grow_request));
	CHECK(proto_bodies(MESSAGE_GROW, PROTO_VERSION, &bodies) &&
	      bodies.reply == sizeof(struct proto_grow_reply));
	CHECK(proto_bodies(MESSAGE_GROW, 7, &bodies) &&
	      bodies.reply == sizeof(struct proto_grow_reply));
	CHECK(!proto_bodies(MESSAGE_STATUS, 7, &bodies) && !proto_bodies(MESSAGE_STATUS, 6, &bodies) && !proto_bodies(MESSAGE_GROW, 5, &bodies));
	header.version = 6;
	header_check_gives(header, 0, "");
	CHECK(!proto_is_foreign(&header));
	header.kinds ^= 1;
	header_check_gives(header, -EPROTO, "kinds");
	CHECK(proto_is_foreign(&header));
	header = proto_header(MESSAGE_STATUS, 0, 0);
	header.version = 6;
	header_check_gives(header, -EPROTO, "version 6; this side speaks version 8");
	CHECK(proto_is_foreign(&header));
}

static void headers(void)
{
	struct proto_header header = header_of(8);

	CHECK(header.magic == PROTO_MAGIC && !memcmp(&header, "RDMA", 4));
	CHECK(header.version == PROTO_VERSION && header.type == MESSAGE_GROW);
	CHECK(header.length == sizeof(header) + 8 && header.status == PROTO_REFUSED);
	CHECK(header.kinds == kinds_signature());
	header_check_gives(header, 0, "");
	header_check_gives(header_of(0), 0, "");
	header_check_gives(header_of(200 - sizeof(header)), 0, "");
	header_check_gives(header_of(201 - sizeof(header)), -EPROTO, "201 bytes");
	header_check_gives(header_of(UINT32_MAX - sizeof(header)), -EPROTO, "4294967295 bytes");
	header.length = sizeof(header) - 1;
	header_check_gives(header, -EPROTO, "23 bytes");
	header = header_of(8);
	header.type = UINT16_MAX;
	header_check_gives(header, -EPROTO, "type 65535");
	header.kinds ^= 1;
	header_check_gives(header, -EPROTO, "kinds");
	header.version = 9; /* in another version the field of the kinds may mean something else */
	header_check_gives(header, -EPROTO, "version 9; this side speaks version 8");
	header.magic = 0x20544547;
	header_check_gives(header, -EPROTO, "0x20544547 instead of 0x414d4452");
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
	CHECK(proto_call(chosen, MESSAGE_STATUS, NULL, NULL, NULL, 0, LONG_MS, problem) ==
	      -ENAMETOOLONG);
	CHECK(strstr(problem, "107 characters"), "%s", problem);
	CHECK(!strcmp(untouched, "as it was"));
	chosen[PROTO_PATH - 1] = '\0';
	CHECK(!proto_socket_path(chosen, longest) && !strcmp(longest, chosen));
	CHECK(proto_call(longest, MESSAGE_STATUS, NULL, NULL, NULL, 0, 0, problem) == -ENOENT, "%s",
	      problem);
	CHECK(errno == SOME_ERRNO);
}

/* A call for a message with rows, of an unknown type, and rows of a message without them. */
static void misuse(void)
{
	struct proto_choose choose = { 0 };

	CHECK(proto_call(server_path, MESSAGE_GET_STATS, &choose, NULL, NULL, 0, 0, problem) ==
	      -EINVAL);
	CHECK(proto_call(server_path, (enum message)999, NULL, NULL, NULL, 0, 0, problem) ==
	      -EINVAL);
	CHECK(proto_rows(server_path, MESSAGE_STATUS, &choose, row_see, NULL, 0, problem) == -EINVAL);
}

static void driver(void)
{
	server_path_init();
	RUN(table);
	RUN(document);
	RUN(headers);
	RUN(former_versions);
	RUN(paths);
	RUN(misuse);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
