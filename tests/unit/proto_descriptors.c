/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that come with a reply: the client hands over at most two, closes all others, and
 * leaks none when the call fails. The connection that a client keeps open is one of them.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "protoserver.h"

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

static unsigned with_header, with_body; /* descriptors */

static void serve_pong_with_fds(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	if (with_header)
		give_with_fds(connection, &reply.header, sizeof(reply.header), with_header);
	else
		give_bytes(connection, &reply.header, sizeof(reply.header));
	if (with_body)
		give_with_fds(connection, &reply.state, sizeof(reply.state), with_body);
	else
		give_bytes(connection, &reply.state, sizeof(reply.state));
}

static void passing(unsigned header_fds, unsigned body_fds, int expected)
{
	unsigned before = descriptors_open(), came = 0;
	struct proto_reply reply = { .fd = { -1, -1 } };
	struct proto_status answer;
	struct server server;
	int result;

	with_header = header_fds;
	with_body = body_fds;
	server_start(&server, serve_pong_with_fds);
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
	CHECK(descriptors_open() == before, "%u and %u: leaked", header_fds, body_fds);
	/* A caller without a place for descriptors does not get them. */
	server_start(&server, serve_pong_with_fds);
	CHECK(ping_with(&answer, NULL, PROTO_KEEP_CONNECTION, LONG_MS) == expected);
	server_stop(&server);
	CHECK(descriptors_open() == before, "%u and %u: leaked", header_fds, body_fds);
}

static void passed(void)
{
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
}

static void serve_failure_with_fds(int connection, unsigned number)
{
	struct reply reply = reply_failure(-EACCES, "no", 3);

	take_request(connection);
	give_with_fds(connection, &reply, reply.header.length, 2);
}

static void serve_close_with_fds(int connection, unsigned number)
{
	struct reply reply = reply_pong();

	take_request(connection);
	give_with_fds(connection, &reply, reply.header.length - 1, 2);
}

static void serve_row_with_fds(int connection, unsigned number)
{
	struct reply reply = reply_row(1);

	take_request(connection);
	give_with_fds(connection, &reply, reply.header.length, 2);
	give_end_of_rows(connection);
}

static void passed_with_failures(void)
{
	unsigned before = descriptors_open();
	struct server server;
	int count;

	server_start(&server, serve_failure_with_fds);
	CHECK(ping(LONG_MS) == -EACCES);
	server_stop(&server);
	server_start(&server, serve_close_with_fds);
	CHECK(ping(100) == -ECONNRESET);
	server_stop(&server);
	server_start(&server, serve_row_with_fds);
	CHECK(stats(0, &count) == 0 && count == 1);
	server_stop(&server);
	CHECK(descriptors_open() == before, "leaked");
}

static struct rlimit old_limit;

static void serve_fds_at_limit(int connection, unsigned number)
{
	struct reply reply = reply_pong();
	struct rlimit none = { .rlim_cur = 3, .rlim_max = old_limit.rlim_max };

	take_request(connection);
	setrlimit(RLIMIT_NOFILE, &none);
	give_with_fds(connection, &reply, reply.header.length, 2);
}

/* The process may not open any more descriptors when two arrive. */
static void passed_at_limit(void)
{
	unsigned before = descriptors_open();
	struct server server;
	int result;

	getrlimit(RLIMIT_NOFILE, &old_limit);
	server_start(&server, serve_fds_at_limit);
	result = ping(LONG_MS);
	setrlimit(RLIMIT_NOFILE, &old_limit);
	server_stop(&server);
	CHECK(result == -EMFILE, "%d, %s", result, problem);
	CHECK(descriptors_open() == before, "leaked");
}

static void serve_pong_and_wait(int connection, unsigned number)
{
	serve_pong(connection, number);
	wait_for_close(connection);
}

/* It is open until the client closes it, and its number is not 0, 1 or 2. */
static void connection_kept(void)
{
	struct proto_reply reply = { .connection = -1 };
	unsigned failed = checks_failed();
	struct proto_status answer;
	struct server server;
	char byte;
	pid_t child;
	int status;

	server_start(&server, serve_pong_and_wait);
	child = family_fork();
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

static void driver(void)
{
	server_path_init();
	RUN(passed);
	RUN(passed_with_failures);
	RUN(passed_at_limit);
	RUN(connection_kept);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
