/* SPDX-License-Identifier: MIT */
/*
 * Asking a collector. A call makes a connection of its own, sends one request
 * and reads the reply, all before a deadline; so no descriptor is kept, unless
 * the caller wants that, which the program around us could close or confuse with
 * its own. Nothing here
 * allocates, blocks beyond the deadline, raises a signal, or changes errno.
 */
#ifndef PROTO_CLIENT_H
#define PROTO_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/descriptors.h"
#include "base/problem.h"
#include "proto/messages.h"

#define PROTO_SERVICE_SOCKET "/run/rdma_intercept/collector.sock"
#define PROTO_DEFAULT_SOCKET "/tmp/rdma_collector.sock"
#define PROTO_SOCKET_VARIABLE "RDMA_COLLECTOR_SOCKET"

enum {
	PROTO_PATH = 108,
	PROTO_FDS = DESCRIPTORS_MAX,
	PROTO_REPLY_MS = 1000, /* what a server that took the connection gets at least, */
	PROTO_LOOK_UP_MS = 15000, /* or if it looks up names of users and groups before */
};

/* The path that names the collector: chosen (unless NULL or ""), or the service's if
 * something is there, or the documented default. -ENAMETOOLONG. */
int proto_socket_path(const char *chosen, char ret_path[PROTO_PATH]);

struct proto_reply {
	int status;	   /* of the collector: 0 or a positive outcome */
	int fd[PROTO_FDS]; /* -1 if none came; the receiver closes them */
	int connection;	   /* kept open if asked for, otherwise -1; never 0, 1 or 2 */
	bool askable;	   /* proto_ask can use it */
	unsigned version;  /* of the protocol, which the collector speaks */
};

enum {
	PROTO_KEEP_CONNECTION = 1,
	PROTO_LOOKS_UP = 2, /* the server may look up names first: it gets PROTO_LOOK_UP_MS */
};

/*
 * One request, one reply. body and *ret_body are of the sizes that the table has
 * for the type (NULL where that is none); ret_reply may be NULL. 0, or -errno with
 * a sentence that names the thing in problem and the outputs untouched:
 * -ENOENT and -ECONNREFUSED when nobody serves the path, -ECONNRESET when the server
 * closed before its reply was complete, -ETIMEDOUT when it did not answer or its
 * queue was full, -EPERM when it is another user's (neither root, nor of our own uid),
 * -EMFILE when no descriptor is left for the connection, or for those of the reply, -ENOBUFS when
 * this process can make no socket for another reason (such as a filter of system calls),
 * -EPROTO for an invalid answer or a collector of another version, or the collector's own negative
 * status. A collector of a former version in which the message is known (former.def) is asked
 * again in that version; what its reply lacks is 0.
 *
 * A collector that is just started again is waited for: until patience_ms have passed,
 * an attempt that found no socket, nobody at it or its queue full, or whose connection
 * was lost, is repeated; 0 means one attempt. A server that took the connection has until
 * then to answer, but at least PROTO_REPLY_MS: so a call takes at most patience_ms +
 * PROTO_REPLY_MS. Repeating is harmless for every message of this protocol.
 */
int proto_call(const char *path, enum message type, const void *body, void *ret_body,
	       struct proto_reply *ret_reply, unsigned flags, unsigned patience_ms,
	       char problem[PROBLEM_SIZE]);

/*
 * One more request over a connection that was kept, in the version that ret_reply named: its status, or -errno with a sentence, and
 * then the connection must not be used any more. It needs no new descriptor and no path, and
 * only the most common system calls (read, write, rt_sigprocmask), since a program may have
 * forbidden the others to itself. The caller makes sure that the number is still the connection's.
 * -ECONNRESET: nobody is at the other end any more; -ETIMEDOUT after PROTO_REPLY_MS: then the
 * request is withdrawn, and a server that comes to it later does not carry it out.
 */
int proto_ask(const char *path, int connection, unsigned version, enum message type,
	      const void *body, void *ret_body, char problem[PROBLEM_SIZE]);

/*
 * The same for replies in rows: each is handed to the function until it returns
 * something other than 0, which is then the result. The time for an answer holds for
 * each row; between the rows of EVENTS with CHOOSE_FOLLOW there is no limit. Nothing is
 * repeated once a row was handed over.
 */
typedef int proto_row_function(const void *row, void *closure);
int proto_rows(const char *path, enum message type, const void *body, proto_row_function *each,
	       void *closure, unsigned patience_ms, char problem[PROBLEM_SIZE]);

#endif
