/* SPDX-License-Identifier: MIT */
/* The server, its replies and the watched calls; see protoserver.h. */
#include "protoserver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"

char server_path[PROTO_PATH];
char problem[PROBLEM_SIZE];

void server_path_init(void)
{
	if (chmod(harness_path("."), 0777))
		abort();
	server_path_number(0);
}

void server_path_number(unsigned number)
{
	char file[32];

	snprintf(file, sizeof(file), "server-%u.sock", number);
	snprintf(server_path, sizeof(server_path), "%s", harness_path(file));
}

int server_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, server_path, sizeof(address.sun_path));
	unlink(server_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(server_path, 0666))
		abort();
	return fd;
}

void *server_loop(void *closure)
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

void server_start(struct server *server, serve_function *serve)
{
	*server = (struct server){ .serve = serve, .listener = server_socket() };
	if (listen(server->listener, 16) ||
	    pthread_create(&server->thread, NULL, server_loop, server))
		abort();
}

void server_stop(struct server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	unlink(server_path);
}

/* ---- requests and replies */

static bool take_bytes(int connection, void *buffer, size_t size)
{
	return !size || recv(connection, buffer, size, MSG_WAITALL) == (ssize_t)size;
}

struct proto_header take_request(int connection)
{
	struct proto_header header;
	char body[PROTO_REQUEST_MAX], sentence[PROBLEM_SIZE];
	const struct proto_message *row;

	if (!CHECK(take_bytes(connection, &header, sizeof(header))))
		return (struct proto_header){ 0 };
	CHECK(!proto_check(&header, PROTO_REQUEST_MAX, sentence), "%s", sentence);
	CHECK(header.status == 0);
	row = proto_message(header.type);
	if (CHECK(row && header.length == sizeof(header) + row->request, "%u bytes", header.length))
		CHECK(take_bytes(connection, body, row->request));
	return header;
}

void wait_for_close(int connection)
{
	char byte;

	CHECK(recv(connection, &byte, 1, 0) == 0);
}

struct reply reply_pong(void)
{
	return (struct reply){ .header = proto_header(MESSAGE_STATUS, 0, sizeof(struct proto_status)),
			       .state = { .pid = 77, .uptime_seconds = 5, .problem = "none" } };
}

struct reply reply_row(int number)
{
	return (struct reply){
		.header = proto_header(MESSAGE_GET_STATS, PROTO_MORE, sizeof(struct proto_row)),
		.row = { .pid = number },
	};
}

struct reply reply_failure(int status, const char *sentence, size_t length)
{
	struct reply reply = { .header = proto_header(MESSAGE_STATUS, status, length) };

	memcpy(reply.text, sentence, length);
	return reply;
}

bool give_bytes(int connection, const void *buffer, size_t size)
{
	return send(connection, buffer, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool give(int connection, struct reply reply)
{
	return give_bytes(connection, &reply, reply.header.length);
}

/* The client may have closed the connection already. */
void give_row(int connection, int number)
{
	give(connection, reply_row(number));
}

void give_end_of_rows(int connection)
{
	struct proto_header end = proto_header(MESSAGE_GET_STATS, 0, 0);

	give_bytes(connection, &end, sizeof(end));
}

void serve_pong(int connection, unsigned number)
{
	take_request(connection);
	CHECK(give(connection, reply_pong()));
}

void serve_third_connection(int connection, unsigned number)
{
	if (number == 0)
		take_request(connection);
	if (number >= 2)
		serve_pong(connection, number);
}

/* ---- watched calls */

unsigned descriptors_open(void)
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

bool closes_on_exec(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

int ping_with(struct proto_status *ret_pong, struct proto_reply *ret_reply, unsigned flags,
	      unsigned patience_ms)
{
	int result;

	errno = SOME_ERRNO;
	result = proto_call(server_path, MESSAGE_STATUS, NULL, ret_pong, ret_reply, flags,
			    patience_ms, problem);
	CHECK(errno == SOME_ERRNO);
	return result;
}

int ping(unsigned patience_ms)
{
	struct proto_reply reply = { .status = -1 };
	struct proto_status answer = { .pid = -1 };
	int result = ping_with(&answer, &reply, 0, patience_ms);

	if (result)
		CHECK(reply.status == -1 && answer.pid == -1, "a failure changed the outputs");
	else
		CHECK(reply.status == 0 && reply.fd[0] == -1 && reply.fd[1] == -1 &&
		      reply.connection == -1 && answer.pid == 77 && answer.uptime_seconds == 5 &&
		      !strcmp(answer.problem, "none"));
	return result;
}

int row_see(const void *data, void *closure)
{
	const struct proto_row *row = data;
	struct rows_seen *seen = closure;

	CHECK(row->pid == ++seen->count);
	return seen->count == seen->stop_at ? 7 : 0;
}

int stats(int stop_at, int *ret_count)
{
	struct proto_choose choose = { .tenant = "t" };
	struct rows_seen seen = { .stop_at = stop_at };
	int result;

	errno = SOME_ERRNO;
	result = proto_rows(server_path, MESSAGE_GET_STATS, &choose, row_see, &seen, LONG_MS,
			    problem);
	CHECK(errno == SOME_ERRNO);
	*ret_count = seen.count;
	return result;
}
