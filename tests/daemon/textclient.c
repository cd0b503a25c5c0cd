/* SPDX-License-Identifier: MIT */
/*
 * Who types into the collector's socket, or sends HTTP, gets one line of text that names the protocol
 * and the command, and the connection ends. Bytes that are no text get the binary answer as before,
 * and neither of them is in the way of others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector.h"
#include "harness.h"
#include "proto/messages.h"

enum { MANY = 2000, ANSWER = 4096 };

static int dial_collector(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", collector_socket());
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)), "errno %d", errno);
	return fd;
}

/* Everything until the collector closes. */
static size_t answer_read(int fd, char ret_answer[ANSWER])
{
	size_t length = 0;
	ssize_t size;

	while (length < ANSWER - 1 && (size = read(fd, ret_answer + length, ANSWER - 1 - length)) > 0)
		length += (size_t)size;
	ret_answer[length] = '\0';
	close(fd);
	return length;
}

static void is_the_line(const char *what, const char *answer)
{
	CHECK(strstr(answer, "the rdma_intercept collector") && strstr(answer, "binary protocol") &&
		      strstr(answer, "'rdma_intercept status'"),
	      "%s: '%s'", what, answer);
	CHECK(strchr(answer, '\n') == answer + strlen(answer) - 1, "%s: not one line: '%s'", what, answer);
}

static void text(void)
{
	static const char *const texts[] = {
		"help\n", "?", "status", "RDMX", "Real words\n", "\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
	};
	char answer[ANSWER];

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = dial_collector();

		CHECK(send(fd, texts[i], strlen(texts[i]), MSG_NOSIGNAL) == (ssize_t)strlen(texts[i]));
		answer_read(fd, answer);
		is_the_line(texts[i], answer);
	}
}

/* The first letters of a message are text, too: the collector waits for more. */
static void letters_of_the_magic(void)
{
	char answer[ANSWER];
	int fd;

	fd = dial_collector();
	CHECK(send(fd, "RDM", 3, MSG_NOSIGNAL) == 3);
	usleep(50000);
	CHECK(recv(fd, answer, sizeof(answer), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK(send(fd, "a\n", 2, MSG_NOSIGNAL) == 2);
	answer_read(fd, answer);
	is_the_line("RDMa", answer);
}

static void other_bytes(void)
{
	static const char bytes[64] = { 'G', 'E', 'T', ' ', 1, 2, 3 };
	const struct proto_header *header;
	_Alignas(8) char answer[ANSWER];
	int fd;

	fd = dial_collector();
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes));
	header = (const void *)answer;
	CHECK(answer_read(fd, answer) > sizeof(*header) && header->magic == PROTO_MAGIC &&
	      header->status == -EPROTO);
}

static void many(void)
{
	struct proto_status status;
	char problem[PROBLEM_SIZE], line[ANSWER];
	int fd;

	memset(line, 'x', sizeof(line));
	for (unsigned i = 0; i < MANY; i++) {
		fd = dial_collector();
		send(fd, line, sizeof(line), MSG_NOSIGNAL); /* it may be closed in the middle */
		close(fd);
	}
	CHECK(proto_call(collector_socket(), MESSAGE_STATUS, NULL, &status, NULL, 0,
			 COLLECTOR_PATIENCE_MS, problem) == 0, "%s", problem);
}

static void driver(void)
{
	collector_fresh("", "");
	RUN(text);
	RUN(letters_of_the_magic);
	RUN(other_bytes);
	RUN(many);
	collector_stop();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
