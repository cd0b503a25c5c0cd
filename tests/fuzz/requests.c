/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what a client sends to the collector's socket, in one piece or two: a whole
 * request of the table reaches the answering function once, everything else does not, what
 * comes back is well formed, and no descriptor stays. The answers are a stand-in's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/server.h"

enum { STREAM_MOST = 2 * PROTO_REQUEST_MAX, ROWS_MOST = 64 };

/* What the answering function does, by bits of a byte. */
enum { FAILS = 1, GIVES_DESCRIPTORS = 2, DETACHES = 4, SUBSCRIBES = 8 };

static struct server *server;
static sd_event *event;
static char directory[] = "/tmp/rdma_fuzz.XXXXXX", path[64];
static unsigned char behaviour;
static unsigned answered;

static void answer_rows(const struct request *request, const void *body)
{
	for (unsigned rows = behaviour % ROWS_MOST; rows; rows--)
		server_row(request, body);
	if (!(behaviour & SUBSCRIBES)) {
		server_end(request);
		return;
	}
	server_subscribe(request);
}

static void answer(void *closure, const struct request *request)
{
	static const char body[PROTO_REPLY_MAX];
	static char copy[PROTO_REQUEST_MAX];
	const struct proto_message *message = request->message;
	int fds[2] = { STDIN_FILENO, STDERR_FILENO };

	answered++;
	if (!message || message != proto_message(message->type) || request->pid != getpid() ||
	    request->uid != geteuid() || (uintptr_t)request->body % sizeof(uint64_t))
		abort();
	memcpy(copy, request->body, message->request); /* all of it is there */
	if (behaviour & FAILS)
		server_fail(request, -EPERM, "no, and %u times no", behaviour);
	else if (message->rows)
		answer_rows(request, body);
	else
		server_reply(request, 0, body, fds, behaviour & GIVES_DESCRIPTORS ? 2 : 0);
	if (!message->rows && behaviour & DETACHES)
		close(server_keep(request));
}

/* The body that was kept with the subscription is still there. */
static bool wants(const void *request_body, const void *body)
{
	const struct proto_choose *choose = request_body;

	return choose->pid != ((const struct proto_event *)body)->pid;
}

static void clean_up(void)
{
	server_free(server);
	sd_event_unref(event);
	rmdir(directory);
}

static void loop_run(void)
{
	while (sd_event_run(event, 0) > 0)
		;
}

static int dial(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		abort();
	return fd;
}

static void prepare(void)
{
	static const struct log no_log;
	char problem[PROBLEM_SIZE];
	int fd;

	if (!mkdtemp(directory) || sd_event_new(&event) < 0)
		abort();
	snprintf(path, sizeof(path), "%s/socket", directory);
	if (server_new(&server, event, path, &no_log, answer, NULL, problem) < 0)
		abort();
	atexit(clean_up);
	/* One that waits, so that the loop has all that it will ever open. */
	fd = dial();
	loop_run();
	close(fd);
	loop_run();
}

/* Gives the header of a stream the marks that all have and no chance would find. */
static void header_mark(unsigned char *stream, size_t size)
{
	struct proto_header header, good = proto_header(0, 0, 0);

	if (size < sizeof(header))
		return;
	memcpy(&header, stream, sizeof(header));
	header.magic = good.magic;
	header.version = good.version;
	header.kinds = good.kinds;
	memcpy(stream, &header, sizeof(header));
}

/* What came back is nothing, or whole messages one after the other. */
static void replies_check(int fd)
{
	static char bytes[(ROWS_MOST + 2) * PROTO_REPLY_MAX];
	char problem[PROBLEM_SIZE];
	size_t size = 0, at = 0;
	ssize_t part;

	while ((part = recv(fd, bytes + size, sizeof(bytes) - size, 0)) > 0) {
		size += (size_t)part;
		loop_run();
	}
	while (at < size) {
		struct proto_header header;

		if (size - at < sizeof(header))
			abort();
		memcpy(&header, bytes + at, sizeof(header));
		/* A failure repeats the type that it was asked for, whatever that is. */
		if (header.status != -EPROTO && proto_check(&header, PROTO_REPLY_MAX, problem) < 0)
			abort();
		if (header.length < sizeof(header) || header.length > size - at)
			abort();
		at += header.length;
	}
}

/* The lowest free number goes up and up only if something stays open. */
static void descriptors_check(void)
{
	enum { OF_THE_FUZZER = 16 };
	static int lowest;
	int fd = dup(STDIN_FILENO);

	if (lowest && fd > lowest + OF_THE_FUZZER)
		abort();
	if (!lowest || fd < lowest)
		lowest = fd;
	close(fd);
}

/* The first byte chooses the answers, the second whether the header is marked and where the
 * stream is cut in two. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static unsigned char stream[STREAM_MOST];
	size_t first;
	int fd;

	if (size < 2 || size - 2 > sizeof(stream))
		return 0;
	if (!server)
		prepare();
	behaviour = data[0];
	answered = 0;
	size -= 2;
	memcpy(stream, data + 2, size);
	if (data[1] & 1)
		header_mark(stream, size);
	first = size * (data[1] >> 1) / 127;
	fd = dial();
	if (first && send(fd, stream, first, MSG_NOSIGNAL) != (ssize_t)first)
		abort();
	loop_run();
	/* It may be closed by now. */
	send(fd, stream + first, size - first, MSG_NOSIGNAL);
	loop_run();
	if (behaviour & SUBSCRIBES)
		server_publish(server, MESSAGE_EVENTS, &(struct proto_event){ 0 }, wants);
	replies_check(fd);
	close(fd);
	loop_run();
	if (answered > 1)
		abort();
	descriptors_check();
	return 0;
}
