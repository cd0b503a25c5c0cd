/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the protocol's client share: a server in a thread, which hands each
 * connection to a function of the test; replies to send; and calls of the client that also
 * check what a call must never do: leave descriptors open or change errno.
 */
#ifndef TESTS_UNIT_PROTOSERVER_H
#define TESTS_UNIT_PROTOSERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "proto/client.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SOME_ERRNO = 4242, LONG_MS = 20000 };

/* Where the server of this process listens, and where its client calls. */
extern char server_path[PROTO_PATH];
/* The sentence of the last call that failed. */
extern char problem[PROBLEM_SIZE];

/* Chooses server_path, in a directory that every user may write to. To be called first. */
void server_path_init(void);
/* Another path: for a child that has a server of its own. */
void server_path_number(unsigned number);

/* number: of the connection, from 0. */
typedef void serve_function(int connection, unsigned number);

struct server {
	serve_function *serve;
	int listener;
	unsigned served; /* connections */
	pthread_t thread;
};
void server_start(struct server *server, serve_function *serve);
void server_stop(struct server *server);
void *server_loop(void *server); /* of the thread */

/* A socket that is bound to the server's path and does not listen. */
int server_socket(void);

/* ---- for serve functions */

/* Reads a request, and checks that it is well formed. */
struct proto_header take_request(int connection);

/* Waits until the client closes the connection. */
void wait_for_close(int connection);

struct reply {
	struct proto_header header;
	union {
		struct proto_status state;
		struct proto_row row;
		char text[2 * PROTO_TEXT];
	};
};
struct reply reply_pong(void);
struct reply reply_row(int number);
struct reply reply_failure(int status, const char *sentence, size_t length);

bool give_bytes(int connection, const void *buffer, size_t size);
/* As many bytes of the reply as its header says. */
bool give(int connection, struct reply reply);
void give_row(int connection, int number);
void give_end_of_rows(int connection);

void serve_pong(int connection, unsigned number);
/* Closes the first two connections, as a collector that is killed and started again. */
void serve_third_connection(int connection, unsigned number);

/* ---- calls that are watched */

unsigned descriptors_open(void);
bool closes_on_exec(int fd);

int ping_with(struct proto_status *ret_pong, struct proto_reply *ret_reply, unsigned flags,
	      unsigned patience_ms);
/* Checks also that the outputs are those of reply_pong(), or untouched after a failure. */
int ping(unsigned patience_ms);

struct rows_seen {
	int count;
	int stop_at; /* the row for which the function returns 7 */
};
int row_see(const void *row, void *rows_seen);
/* Asks for rows; *ret_count: how many the client handed over. */
int stats(int stop_at, int *ret_count);

#endif
