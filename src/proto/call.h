/* SPDX-License-Identifier: MIT */
/*
 * One call to a collector while it is under way; private to the client of this room. connection.c
 * makes and checks the connection, exchange.c sends the request and reads the reply, client.c
 * repeats attempts and is the interface.
 * This runs inside foreign programs: the system calls whose libc wrappers are
 * cancellation points are raw, sockets never block, and every wait has an end.
 */
#ifndef PROTO_CALL_H
#define PROTO_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/client.h"

/* Moments are ns of CLOCK_MONOTONIC. */
#define MILLISECOND 1000000ll
#define SECOND (1000 * MILLISECOND)

union any_reply {
#define MESSAGE(name, number, request, reply, who, how) struct proto_##reply name;
#include "proto/messages.def"
#undef MESSAGE
	char sentence[PROTO_TEXT]; /* of a failure */
};

struct call {
	const char *path;
	const struct proto_message *message;
	const void *request;
	proto_row_function *each; /* for replies in rows */
	void *closure;
	bool follow;	  /* rows may come at any time */
	bool kept;	  /* over a connection that is not ours to close, and waits by itself */
	bool looks_up;	  /* the server may look names up before it answers */
	int64_t patience; /* until when a lost connection is made again */
	char *problem;
	/* of the present attempt: */
	unsigned version; /* of the protocol, in which the request is sent */
	bool lost; /* it failed as it does while a collector is started again */
	bool older; /* the collector does not speak that version: the next attempt has its own */
	int connection;
	int64_t deadline; /* of the message that is under way */
	unsigned fds;
	int fd[PROTO_FDS];
	bool row_given;
	int status;
	union any_reply reply;
};

/* Writes the sentence of a failure; returns error. */
__attribute__((format(printf, 3, 4))) int call_fail(struct call *call, int error,
						    const char *format, ...);

int64_t call_clock_ns(void);

/* Until when the server must have answered. */
int64_t call_reply_deadline(const struct call *call);

/* Waits for events on a descriptor (-1: for none); -ETIMEDOUT when the moment has come. */
int call_wait_until(int64_t moment, int fd, short events);

/* Closes the connection and all descriptors that came with the reply. */
void call_close(struct call *call);

/* ---- connection.c */

int connection_make(struct call *call);

/* Who serves the socket must be root, or of our own uid. */
int server_check(struct call *call);

/* From now on reading and writing wait, and not for long. */
bool connection_make_waiting(int fd);

/* ---- exchange.c */

int request_send(struct call *call);

/* Takes back a request over a kept connection that was not answered in time. */
void request_withdraw(const struct call *call);

/* The whole reply, into call->status and call->reply; rows are handed out as they come. */
int reply_receive(struct call *call);

#endif
