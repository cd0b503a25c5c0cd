/* SPDX-License-Identifier: MIT */
/*
 * The client while no server takes its connection: none listens, one starts meanwhile, or its
 * queue is full; and all that among signals. A thread that is cancelled during a call finishes the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "protoserver.h"

static void no_server(void)
{
	unsigned before = descriptors_open();
	double begin;
	int fd;

	unlink(server_path);
	CHECK(ping(0) == -ENOENT && strstr(problem, server_path), "%s", problem);
	begin = seconds_now();
	CHECK(ping(200) == -ENOENT);
	CHECK(seconds_now() - begin >= .2, "gave up early");
	close(server_socket()); /* a killed collector leaves such a file */
	CHECK(ping(0) == -ECONNREFUSED && strstr(problem, server_path), "%s", problem);
	CHECK(ping(100) == -ECONNREFUSED);
	unlink(server_path);
	fd = open(server_path, O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	CHECK(ping(0) == -ECONNREFUSED);
	unlink(server_path);
	CHECK(descriptors_open() == before);
}

static void *start_later(void *closure)
{
	usleep(100000);
	server_start(closure, serve_pong);
	return NULL;
}

static void started_while_waiting(bool stale_socket)
{
	struct server server;
	pthread_t starter;
	int result;

	if (stale_socket)
		close(server_socket());
	pthread_create(&starter, NULL, start_later, &server);
	result = ping(LONG_MS);
	pthread_join(starter, NULL);
	server_stop(&server);
	CHECK(result == 0, "%d, %s", result, problem);
}

/* Connects until the listener's queue is full; returns how many connections it holds. */
static unsigned queue_fill(int *waiting, unsigned most)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned count = 0;

	memcpy(address.sun_path, server_path, sizeof(address.sun_path));
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

/* The connections that filled the queue send no request. */
static void serve_pong_if_asked(int connection, unsigned number)
{
	char bytes[sizeof(struct proto_header)];

	if (recv(connection, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes))
		give(connection, reply_pong());
}

static void *loop_later(void *closure)
{
	usleep(100000);
	return server_loop(closure);
}

static void queue_full(void)
{
	unsigned before = descriptors_open();
	struct server server = { .serve = serve_pong_if_asked, .listener = server_socket() };
	int waiting[64], result;
	unsigned count;

	if (listen(server.listener, 1))
		abort();
	count = queue_fill(waiting, COUNT(waiting));
	CHECK(ping(0) == -ETIMEDOUT && strstr(problem, "queue is full"), "%s", problem);
	CHECK(ping(100) == -ETIMEDOUT);
	while (count)
		close(waiting[--count]);
	pthread_create(&server.thread, NULL, loop_later, &server);
	result = ping(LONG_MS);
	server_stop(&server);
	CHECK(result == 0, "%d, %s", result, problem);
	CHECK(descriptors_open() == before);
}

/* ---- a signal each millisecond: no wait may begin anew for it */

static volatile sig_atomic_t ticks;
static sig_atomic_t ticks_most;

/* Far more ticks than the call may take milliseconds: it does not end. */
static void tick(int number)
{
	static const char words[] = "the call goes on for ever\n";

	if (++ticks < ticks_most)
		return;
	(void)!write(STDOUT_FILENO, words, sizeof(words) - 1);
	_exit(1);
}

static void ticking(bool on)
{
	struct itimerval each = { { 0, on ? 1000 : 0 }, { 0, on ? 1000 : 0 } };
	struct sigaction action = { .sa_handler = tick };

	ticks = 0;
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &each, NULL))
		abort();
}

/* In a child, which a call without an end takes with it. */
static int ping_ticked(unsigned patience_ms)
{
	unsigned failed_before = checks_failed();
	pid_t pid = fork_child();
	int status, result;

	if (pid == 0) {
		ticks_most = 20 * ((int)patience_ms + PROTO_REPLY_MS);
		ticking(true);
		result = ping(patience_ms);
		ticking(false);
		_exit(checks_failed() > failed_before ? 1 : -result);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status), "status %x", (unsigned)status);
	return -WEXITSTATUS(status);
}

static void signals(void)
{
	int listener = server_socket(), waiting[64], result;
	struct server server;
	unsigned count;

	if (listen(listener, 1))
		abort();
	result = ping_ticked(200); /* in the queue, and nobody takes it from there */
	CHECK(result == -ETIMEDOUT, "%d", result);
	count = queue_fill(waiting, COUNT(waiting));
	result = ping_ticked(200);
	CHECK(result == -ETIMEDOUT, "%d", result);
	while (count)
		close(waiting[--count]);
	close(listener);
	result = ping_ticked(200);
	CHECK(result == -ECONNREFUSED, "%d", result);
	server_start(&server, serve_pong);
	result = ping_ticked(LONG_MS);
	CHECK(result == 0, "%d", result);
	server_stop(&server);
}

static int cancelled_result[2];

/* The cancellation stays pending, since a call contains no cancellation point. */
static void *call_cancelled(void *closure)
{
	struct proto_choose choose = { 0 };
	struct rows_seen seen = { 0 };
	struct proto_status answer;

	pthread_cancel(pthread_self());
	cancelled_result[0] = proto_call(server_path, MESSAGE_STATUS, NULL, &answer, NULL, 0, LONG_MS,
					 problem);
	cancelled_result[1] = proto_rows(server_path, MESSAGE_GET_STATS, &choose, row_see, &seen,
					 LONG_MS, problem);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void cancelled(void)
{
	unsigned before = descriptors_open();
	struct server server;
	pthread_t thread;
	void *end;

	server_start(&server, serve_third_connection);
	cancelled_result[0] = cancelled_result[1] = 1;
	pthread_create(&thread, NULL, call_cancelled, NULL);
	pthread_join(thread, &end);
	server_stop(&server);
	CHECK(end != PTHREAD_CANCELED);
	CHECK(cancelled_result[0] == 0 && cancelled_result[1] == -EPROTO, "%d, %d",
	      cancelled_result[0], cancelled_result[1]);
	CHECK(descriptors_open() == before);
}

static void driver(void)
{
	server_path_init();
	RUN(no_server);
	CASE("server_starts")
		started_while_waiting(false);
	CASE("server_starts_after_crash")
		started_while_waiting(true);
	RUN(queue_full);
	RUN(signals);
	RUN(cancelled);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
