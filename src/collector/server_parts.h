/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the server share (server.c, listener.c, connections.c, replies.c, turns.c);
 * no other file includes it. A connection is in one place at a time: in the line of its user,
 * where it waits for its turn; parked, until it has said all or read all; kept for a further
 * request; or held until server_resume.
 */
#ifndef COLLECTOR_SERVER_PARTS_H
#define COLLECTOR_SERVER_PARTS_H

#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/problem.h"
#include "collector/server.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

enum {
	LINE_MOST = 420,     /* connections of a user that wait for their turn; others are closed */
	SERVER_LINES = 1024, /* users whose numbers meet share one */
	SERVER_EVENTS = 64,  /* of connections, before others have their turn */
};

TAILQ_HEAD(connection_list, connection); /* the oldest first */

struct connection {
	struct server *server;
	struct connection_list *list; /* in which it is: one of the server's, or of a line */
	TAILQ_ENTRY(connection) link;
	bool parked; /* in the list of parked or of kept ones, and in the server's epoll */
	int fd;
	struct ucred peer;
	uint64_t start;	   /* of the peer, where the kernel cannot say later who it was */
	uint64_t deadline; /* seconds; 0: none */
	bool subscribed;
	bool kept;  /* for the next request, after the reply */
	bool ready; /* it has something to say: in its line, and not parked */
	bool held;  /* likewise, until server_resume */
	uint64_t ticket;
	uint16_t version; /* of the protocol, in which it asks and is answered */
	bool broken; /* the client is gone, or has not kept to the rules */
	size_t input;
	size_t output, output_sent, output_size;
	char *output_buffer;
	_Alignas(8) char input_buffer[PROTO_REQUEST_MAX];
};

struct server {
	sd_event *event;
	const struct log *log;
	server_function *answer;
	void *closure;
	int fd;
	bool knows_peers; /* the kernel gives a pidfd of a peer */
	int spare;	  /* given up for a moment when descriptors run out */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat place; /* of the socket that we made */
	sd_event_source *listener, *timer, *turn, *ready;
	int epoll; /* of the parked connections: one source of the loop for them all */
	struct epoll_event found[SERVER_EVENTS]; /* what is being looked at */
	int found_count;
	struct connection_list parked, held;
	struct connection_list kept; /* wait for a further request */
	/* Connections wait in lines, one for each user. Of the lines that are not empty that one
	 * has its turn on whose requests the least time was spent. */
	struct line {
		struct connection_list ready;
		unsigned count, held;
		uint64_t spent_ns;
		bool listed;
		struct line *next; /* of those that are not empty, or were not just now */
	} line[SERVER_LINES];
	struct line *lines;
	uint64_t spent_ns; /* of the line that had the last turn, when that began */
	size_t output;	   /* of all connections */
	struct log_seldom turned_away, foreign;
};

/* ---- listener.c */

/* Binds and listens at server->path, and accepts clients. -errno, with a sentence. */
int listener_open(struct server *server, char problem[PROBLEM_SIZE]);
/* Takes the socket away from its path, if it is still the one that was made. */
void listener_close(struct server *server);

/* ---- connections.c */

int connections_open(struct server *server);
void connections_close(struct server *server);

/* Of a client that was just accepted, whose descriptor it takes over; NULL. */
struct connection *connection_new(struct server *server, int fd, const struct ucred *peer);
void connection_free(struct connection *connection);

/* At the end of a list, and out of the one in which it is. */
void connection_add(struct connection_list *list, struct connection *connection);
void connection_remove(struct connection *connection);
/* Frees the connections in it. Nothing happens to a list of zeros. */
void connection_list_free(struct connection_list *list);

/* Takes a connection out of wherever it waits. */
void connection_unpark(struct connection *connection);
/* It waits for these events of epoll, for so many seconds; 0: for ever. */
void connection_park(struct connection *connection, uint32_t events, uint64_t seconds);

enum progress { PROGRESS_WAIT, PROGRESS_READY, PROGRESS_DONE };

/* Reads what is there. READY: one whole request. DONE: answered, for better or worse. */
enum progress connection_receive(struct connection *connection);
/* After a step: waits for more, or is done with the connection. */
void connection_settle(struct connection *connection, enum progress progress);

/* ---- replies.c */

/* Keeps what the client does not take now. False: the connection is broken. */
bool output_keep(struct connection *connection, const void *data, size_t size);
/* Sends as much as the client takes now. */
void output_send(struct connection *connection);
bool output_waits(const struct connection *connection);
void output_fail(struct connection *connection, enum message type, int error, const char *text);

/* ---- turns.c */

int turns_open(struct server *server);
void turns_close(struct server *server);

struct line *line_of_user(struct server *server, uid_t uid);
/* The connection waits for its turn; or it is closed, since its user has too many there. */
void line_join(struct connection *connection);
/* It does not wait for its turn any more, and is not held either. */
void line_leave(struct connection *connection);

#endif
