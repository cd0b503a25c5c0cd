/* SPDX-License-Identifier: MIT */
/*
 * The collector's socket: one request per connection, answered and closed, unless the connection
 * is kept for more. Knows frames, deadlines and who is at the other end; the function that gets
 * the requests knows what they mean. Whatever a client does to its connection costs that client
 * alone.
 */
#ifndef COLLECTOR_SERVER_H
#define COLLECTOR_SERVER_H

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "base/problem.h"
#include "proto/messages.h"

struct server;
struct connection;

struct request {
	struct connection *connection;
	const struct proto_message *message;
	const void *body; /* of the message's size, aligned */
	pid_t pid;	  /* as the kernel tells it */
	uid_t uid;
	gid_t gid;
	uint64_t start;	 /* of the process when its connection came; 0 if the kernel knows it */
	int fd;		 /* of the connection, to ask the kernel more */
	uint64_t ticket; /* of server_hold, if it comes for the second time; or 0 */
};

typedef void server_function(void *closure, const struct request *request);

/*
 * Listens at the path. What is there already is replaced only if it is a socket of our own
 * at which nobody listens; otherwise a negative result, with a sentence that names it.
 */
int server_new(struct server **ret_server, sd_event *event, const char *path, const struct log *log,
	       server_function *answer, void *closure, char problem[PROBLEM_SIZE]);

/* Closes everything and takes the socket away, if it is still ours. */
void server_free(struct server *server);

/* ---- answering. Each request gets exactly one of: reply, fail, rows up to server_end, keep,
 * hold. */
void server_reply(const struct request *request, int status, const void *body, const int *fds,
		  unsigned fd_count);
void server_fail(const struct request *request, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* False when the client is gone or does not read: no more rows then. */
bool server_row(const struct request *request, const void *body);
void server_end(const struct request *request);

/*
 * Keeps the connection for further requests after the reply, until the client closes it. Returns
 * a second descriptor of it, for the caller to close: who calls shutdown on it ends the
 * connection. -1 if the client is gone, or there is no descriptor left: it is not kept then.
 */
int server_keep(const struct request *request);

/* Keeps the request until server_resume, when it comes again, with this ticket. False: its user has
 * too many of those, and it must be answered now. */
bool server_hold(const struct request *request, uint64_t ticket);
void server_resume(struct server *server);

/* Keeps the connection for server_publish, which sends to those whose request wants it. */
void server_subscribe(const struct request *request);
typedef bool server_filter(const void *request_body, const void *body);
void server_publish(struct server *server, enum message type, const void *body,
		    server_filter *wants);

/* Whether the client may change things: root, the collector's own user, or of the group (NULL:
 * there is none). */
bool server_is_admin(const struct request *request, const gid_t *group);

#endif
