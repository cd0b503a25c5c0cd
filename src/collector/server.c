/* SPDX-License-Identifier: MIT */
/* Connections and their frames; see server.h. */
#include "collector/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/identity.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

enum {
	BACKLOG = 512,	       /* all users share it, so it is short, and emptied before all else */
	ACCEPTS_AT_ONCE = 2 * BACKLOG, /* before others have their turn */
	PARKED_PER_USER = 256, /* connections that have not said all, or not read all */
	DEADLINE_SECONDS = 2,  /* for a whole request */
	READING_SECONDS = 10,  /* for a reply to be read */
	OUTPUT_MAX = 64 << 20, /* of replies that wait to be read, together */
	READY_PER_USER = 420,  /* connections that wait for their turn; others are closed */
	HELD_PER_USER = 256,   /* requests that wait for server_resume */
	LINES = 1024,	       /* users whose numbers meet share one */
	EVENTS_AT_ONCE = 64,   /* of connections, before others have their turn */
	TURN_US = 1000,	       /* of answering, before new clients are looked at */
	OUTPUT_PER_USER = OUTPUT_MAX / 4,
	SUBSCRIBERS_PER_USER = 16,
	SUBSCRIBER_MAX = 1 << 20, /* of events that wait for one subscriber */
};

struct connection {
	struct server *server;
	struct connection *next, *previous; /* of those that are parked, the oldest first */
	bool parked; /* in that ring, or that of the kept ones, and in the server's epoll */
	int fd;
	struct ucred peer;
	uint64_t start;	   /* of the peer, where the kernel cannot say later who it was */
	uint64_t deadline; /* seconds; 0: none */
	bool subscribed;
	bool kept; /* for the next request, after the reply */
	bool ready;  /* it has something to say: in the ring of those, and not parked */
	bool held;   /* likewise, until server_resume */
	uint64_t ticket;
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
	struct epoll_event found[EVENTS_AT_ONCE]; /* what is being looked at */
	int found_count;
	struct connection parked, held; /* rings */
	struct connection kept;		/* ring of those that wait for a further request */
	/* Connections wait in lines, one for each user. Of the lines that are not empty that one
	 * has its turn on whose requests the least time was spent. */
	struct line {
		struct connection ready; /* ring, the oldest first */
		unsigned count, held;
		uint64_t spent_ns;
		bool listed;
		struct line *next; /* of those that are not empty, or were not just now */
	} line[LINES];
	struct line *lines;
	uint64_t spent_ns; /* of the line that had the last turn, when that began */
	size_t output; /* of all connections */
	struct log_seldom turned_away;
};

/* ---- connections */

static void ring_add(struct connection *ring, struct connection *connection)
{
	connection->next = ring;
	connection->previous = ring->previous;
	connection->previous->next = ring->previous = connection;
}

static void ring_remove(struct connection *connection)
{
	connection->next->previous = connection->previous;
	connection->previous->next = connection->next;
}

static struct line *line_of(const struct connection *connection)
{
	return &connection->server->line[connection->peer.uid % LINES];
}

static void unpark(struct connection *connection)
{
	if (connection->ready) {
		ring_remove(connection);
		line_of(connection)->count--;
		connection->ready = false;
	}
	if (connection->held) {
		ring_remove(connection);
		line_of(connection)->held--;
		connection->held = false;
	}
	if (!connection->parked)
		return;
	epoll_ctl(connection->server->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
	ring_remove(connection);
	connection->parked = false;
	/* What was found of it together with others is void. */
	for (int i = 0; i < connection->server->found_count; i++)
		if (connection->server->found[i].data.ptr == connection)
			connection->server->found[i].data.ptr = NULL;
}

static void connection_free(struct connection *connection)
{
	unpark(connection);
	connection->server->output -= connection->output_size;
	free(connection->output_buffer);
	if (connection->fd >= 0)
		close(connection->fd);
	free(connection);
}

static int on_timer(sd_event_source *source, uint64_t now, void *closure)
{
	struct server *server = closure;
	uint64_t seconds = clock_now_seconds();
	struct connection *next;

	for (struct connection *c = server->parked.next; c != &server->parked; c = next) {
		next = c->next;
		if (c->deadline && c->deadline <= seconds)
			connection_free(c);
	}
	if (server->parked.next == &server->parked)
		return sd_event_source_set_enabled(source, SD_EVENT_OFF);
	sd_event_source_set_time_relative(source, 1000000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* A user has only so many connections that wait: the oldest makes room. */
static void make_room(struct server *server, uid_t uid)
{
	struct connection *oldest = NULL;
	unsigned count = 0;

	for (struct connection *c = server->parked.next; c != &server->parked; c = c->next)
		if (c->peer.uid == uid && c->deadline) {
			oldest = oldest ? oldest : c;
			count++;
		}
	if (count >= PARKED_PER_USER)
		connection_free(oldest);
}

static void park(struct connection *connection, uint32_t events, uint64_t seconds)
{
	struct server *server = connection->server;
	struct epoll_event event = { .events = events, .data.ptr = connection };

	connection->deadline = seconds ? clock_now_seconds() + seconds + 1 : 0;
	if (connection->parked) {
		epoll_ctl(server->epoll, EPOLL_CTL_MOD, connection->fd, &event);
		return;
	}
	make_room(server, connection->peer.uid);
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, connection->fd, &event)) {
		connection_free(connection);
		return;
	}
	connection->parked = true;
	ring_add(&server->parked, connection);
	/* Who comes now must not move the time of those who wait. */
	if (sd_event_source_get_enabled(server->timer, NULL) > 0)
		return;
	sd_event_source_set_time_relative(server->timer, 1000000);
	sd_event_source_set_enabled(server->timer, SD_EVENT_ONESHOT);
}

/* ---- sending */

static size_t output_of(const struct server *server, uid_t uid)
{
	size_t output = 0;

	for (const struct connection *c = server->parked.next; c != &server->parked; c = c->next)
		if (c->peer.uid == uid)
			output += c->output_size;
	return output;
}

static bool output_keep(struct connection *connection, const void *data, size_t size)
{
	size_t wanted = connection->output + size;
	struct server *server = connection->server;

	if (connection->broken || !size)
		return !connection->broken;
	if (wanted > connection->output_size) {
		size_t grown = wanted + wanted / 2;
		char *buffer = server->output + grown - connection->output_size > OUTPUT_MAX ||
					       (connection->peer.uid &&
						output_of(server, connection->peer.uid) + grown >
							OUTPUT_PER_USER) ||
					       (connection->subscribed && wanted > SUBSCRIBER_MAX) ?
				       NULL :
				       realloc(connection->output_buffer, grown);

		if (!buffer) {
			connection->broken = true;
			return false;
		}
		server->output += grown - connection->output_size;
		connection->output_buffer = buffer;
		connection->output_size = grown;
	}
	memcpy(connection->output_buffer + connection->output, data, size);
	connection->output += size;
	return true;
}

/* Sends as much as the client takes now. */
static void output_send(struct connection *connection)
{
	while (!connection->broken && connection->output_sent < connection->output) {
		ssize_t sent = send(connection->fd,
				    connection->output_buffer + connection->output_sent,
				    connection->output - connection->output_sent, MSG_NOSIGNAL);

		if (sent > 0)
			connection->output_sent += (size_t)sent;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			connection->broken = true;
	}
	connection->output = connection->output_sent = 0;
}

static bool output_waits(const struct connection *connection)
{
	return connection->output_sent < connection->output;
}

/* A message straight to the socket, with descriptors if there are any. What does not fit is
 * kept; descriptors go with the first byte. */
static void message_send(struct connection *connection, enum message type, int status,
			 const void *body, size_t size, const int *fds, unsigned fd_count)
{
	struct proto_header header = proto_header(type, status, size);
	struct iovec parts[2] = { { &header, sizeof(header) }, { (void *)body, size } };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = size ? 2 : 1 };
	size_t skip;
	ssize_t sent;

	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	do
		sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno != EAGAIN || fd_count)) {
		connection->broken = true;
		return;
	}
	skip = sent < 0 ? 0 : (size_t)sent;
	for (int i = 0; i < 2; i++) {
		size_t here = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		output_keep(connection, (char *)parts[i].iov_base + here, parts[i].iov_len - here);
		skip -= here;
	}
}

void server_reply(const struct request *request, int status, const void *body, const int *fds,
		  unsigned fd_count)
{
	message_send(request->connection, request->message->type, status, body,
		     request->message->reply, fds, fd_count);
}

static void fail(struct connection *connection, enum message type, int error, const char *text)
{
	message_send(connection, type, error, text, strlen(text) + 1, NULL, 0);
}

void server_fail(const struct request *request, int error, const char *format, ...)
{
	char text[PROTO_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fail(request->connection, request->message->type, error, text);
}

bool server_row(const struct request *request, const void *body)
{
	struct proto_header header =
		proto_header(request->message->type, PROTO_MORE, request->message->reply);

	output_keep(request->connection, &header, sizeof(header));
	return output_keep(request->connection, body, request->message->reply);
}

void server_end(const struct request *request)
{
	struct proto_header header = proto_header(request->message->type, 0, 0);

	output_keep(request->connection, &header, sizeof(header));
	output_send(request->connection);
}

int server_keep(const struct request *request)
{
	struct connection *connection = request->connection;
	int fd = connection->broken ? -1 : fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);

	connection->kept = fd >= 0;
	return fd;
}

/* A user has only so many subscribers: the oldest makes room. */
static void make_room_to_subscribe(struct server *server, uid_t uid)
{
	struct connection *oldest = NULL;
	unsigned count = 0;

	for (struct connection *c = server->parked.next; c != &server->parked; c = c->next)
		if (c->subscribed && c->peer.uid == uid) {
			oldest = oldest ? oldest : c;
			count++;
		}
	if (count >= SUBSCRIBERS_PER_USER)
		connection_free(oldest);
}

void server_subscribe(const struct request *request)
{
	make_room_to_subscribe(request->connection->server, request->uid);
	request->connection->subscribed = true;
	output_send(request->connection);
}

/* A subscriber that does not read loses the connection, and then knows that it lost some. */
void server_publish(struct server *server, enum message type, const void *body,
		    server_filter *wants)
{
	const struct proto_message *message = proto_message(type);
	struct proto_header header = proto_header(type, PROTO_MORE, message->reply);
	struct connection *next;

	for (struct connection *c = server->parked.next; c != &server->parked; c = next) {
		next = c->next;
		if (!c->subscribed || !wants(c->input_buffer + sizeof(header), body))
			continue;
		output_keep(c, &header, sizeof(header));
		output_keep(c, body, message->reply);
		output_send(c);
		if (c->broken)
			connection_free(c);
		else
			park(c, output_waits(c) ? EPOLLIN | EPOLLOUT : EPOLLIN, 0);
	}
}

/* ---- receiving */

/* One whole request is there. */
static void dispatch(struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;
	const struct proto_message *message = proto_message(header->type);
	struct request request = {
		.connection = connection,
		.message = message,
		.body = header + 1,
		.pid = connection->peer.pid,
		.uid = connection->peer.uid,
		.gid = connection->peer.gid,
		.start = connection->start,
		.fd = connection->fd,
		.ticket = connection->ticket,
	};

	connection->server->answer(connection->server->closure, &request);
}

enum progress { PROGRESS_WAIT, PROGRESS_READY, PROGRESS_DONE };

/* Whether the header, as far as it is there, begins a request that we know. */
static bool header_is_good(const struct proto_header *header, char *problem, size_t size)
{
	const struct proto_message *message;

	if (proto_check(header, PROTO_REQUEST_MAX, problem, size) < 0)
		return false;
	message = proto_message(header->type);
	if (header->length == sizeof(*header) + message->request)
		return true;
	snprintf(problem, size, "%s of %u bytes, not %zu", message->name, header->length,
		 sizeof(*header) + message->request);
	return false;
}

/* Reads what is there. DONE: answered, for better or worse. */
static enum progress receive(struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;
	char problem[PROTO_TEXT];

	for (;;) {
		ssize_t size = recv(connection->fd, connection->input_buffer + connection->input,
				    sizeof(connection->input_buffer) - connection->input, 0);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			return PROGRESS_WAIT;
		if (size <= 0) {
			connection->broken = true;
			return PROGRESS_DONE;
		}
		connection->input += (size_t)size;
		if (connection->input < sizeof(*header))
			continue;
		if (!header_is_good(header, problem, sizeof(problem))) {
			connection->kept = false;
			fail(connection, header->type, -EPROTO, problem);
			return PROGRESS_DONE;
		}
		if (connection->input > header->length) {
			connection->kept = false;
			fail(connection, header->type, -EPROTO, "more than one request");
			return PROGRESS_DONE;
		}
		if (connection->input == header->length)
			return PROGRESS_READY;
	}
}

/* Who comes anew has no credit from the time of its absence. */
static void line_open(struct server *server, struct line *line)
{
	if (line->spent_ns < server->spent_ns)
		line->spent_ns = server->spent_ns;
	if (line->listed)
		return;
	line->listed = true;
	line->next = server->lines;
	server->lines = line;
}

/* A timer that is due at once, since the loop would run a deferred source before all others as
 * long as it is on; so the listener has its turn in between. */
static void turn_await(struct server *server)
{
	if (sd_event_source_get_enabled(server->turn, NULL) > 0)
		return;
	sd_event_source_set_time_relative(server->turn, 0);
	sd_event_source_set_enabled(server->turn, SD_EVENT_ONESHOT);
}

/* It waits for its turn. */
static void line_up(struct connection *connection)
{
	struct server *server = connection->server;
	struct line *line = line_of(connection);

	unpark(connection);
	/* A kept connection stays: a member has one, and one request on it. */
	if (line->count >= READY_PER_USER && !connection->kept) {
		connection_free(connection);
		return;
	}
	if (!line->count++)
		line_open(server, line);
	ring_add(&line->ready, connection);
	connection->ready = true;
	turn_await(server);
}

bool server_hold(const struct request *request, uint64_t ticket)
{
	struct connection *connection = request->connection;
	struct line *line = line_of(connection);

	if (line->held == HELD_PER_USER)
		return false;
	line->held++;
	connection->held = true;
	connection->ticket = ticket;
	ring_add(&connection->server->held, connection);
	return true;
}

void server_resume(struct server *server)
{
	while (server->held.next != &server->held)
		line_up(server->held.next);
}

/* Waits for the next request, however long. Apart from those that are parked, which are few. */
static void wait_for_next(struct connection *connection)
{
	struct server *server = connection->server;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };

	unpark(connection);
	connection->input = 0;
	connection->ticket = 0;
	connection->deadline = 0;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, connection->fd, &event)) {
		connection_free(connection);
		return;
	}
	connection->parked = true;
	ring_add(&server->kept, connection);
}

/* After a step: waits for more, or is done with the connection. */
static void settle(struct connection *connection, enum progress progress)
{
	if (connection->broken) {
		connection_free(connection);
		return;
	}
	if (progress == PROGRESS_READY) {
		line_up(connection);
	} else if (progress == PROGRESS_WAIT) {
		/* A trickle does not move the deadline. */
		if (!connection->parked)
			park(connection, EPOLLIN, DEADLINE_SECONDS);
	} else if (connection->subscribed) {
		park(connection, output_waits(connection) ? EPOLLIN | EPOLLOUT : EPOLLIN, 0);
	} else if (output_waits(connection)) {
		park(connection, EPOLLOUT, READING_SECONDS);
	} else if (connection->kept) {
		wait_for_next(connection);
	} else {
		connection_free(connection);
	}
}

/* A subscriber has nothing more to say: what comes from it is its end. */
static void subscriber_ready(struct connection *connection, uint32_t events)
{
	output_send(connection);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		connection->broken = true;
	settle(connection, PROGRESS_DONE);
}

/* Who has hung up meanwhile wants no answer. */
static bool has_hung_up(const struct connection *connection)
{
	char byte;

	return recv(connection->fd, &byte, sizeof(byte), MSG_PEEK) == 0;
}

/* Whether its request is there already: it was held. */
static bool is_complete(const struct connection *connection)
{
	const struct proto_header *header = (const void *)connection->input_buffer;

	return connection->input >= sizeof(*header) && connection->input == header->length;
}

static void serve(struct connection *connection)
{
	enum progress progress =
		is_complete(connection) ? PROGRESS_READY : receive(connection);

	if (progress == PROGRESS_READY) {
		if (has_hung_up(connection))
			connection->broken = true;
		else
			dispatch(connection);
		progress = PROGRESS_DONE;
	}
	if (!connection->held)
		settle(connection, progress);
}

/* The line that has its turn; those that became empty leave. */
static struct line *line_choose(struct server *server)
{
	struct line **link = &server->lines, *chosen = NULL;

	while (*link) {
		if (!(*link)->count) {
			(*link)->listed = false;
			*link = (*link)->next;
			continue;
		}
		if (!chosen || (*link)->spent_ns < chosen->spent_ns)
			chosen = *link;
		link = &(*link)->next;
	}
	return chosen;
}

/* Who asks much, or for much, waits for itself. */
static int on_turn(sd_event_source *source, uint64_t time, void *closure)
{
	struct server *server = closure;
	uint64_t begun = clock_now_ns(), until = begun + TURN_US * 1000u, now = begun;
	struct line *line = NULL;

	while (now < until && (line = line_choose(server))) {
		struct connection *connection = line->ready.next;

		server->spent_ns = line->spent_ns;
		unpark(connection);
		serve(connection);
		now = clock_now_ns();
		line->spent_ns += now - begun;
		begun = now;
	}
	if (line)
		turn_await(server);
	return 0;
}

static void connection_ready(struct connection *connection, uint32_t events)
{
	if (connection->subscribed) {
		subscriber_ready(connection, events);
	} else if (output_waits(connection)) {
		size_t before = connection->output_sent;

		output_send(connection);
		if (connection->output_sent == before && (events & (EPOLLHUP | EPOLLERR)))
			connection->broken = true;
		settle(connection, PROGRESS_DONE);
	} else {
		settle(connection, receive(connection));
	}
}

static int on_ready(sd_event_source *source, int fd, uint32_t events, void *closure)
{
	struct server *server = closure;

	server->found_count = epoll_wait(server->epoll, server->found, EVENTS_AT_ONCE, 0);
	for (int i = 0; i < server->found_count; i++)
		if (server->found[i].data.ptr)
			connection_ready(server->found[i].data.ptr, server->found[i].events);
	server->found_count = 0;
	return 0;
}

static void welcome(struct server *server, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct connection *connection = NULL;

	/* The cheapest comes first: a flood ends here. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	    server->line[peer.uid % LINES].count < READY_PER_USER)
		connection = malloc(sizeof(*connection));
	if (!connection) {
		close(fd);
		return;
	}
	memset(connection, 0, offsetof(struct connection, input_buffer));
	connection->server = server;
	connection->fd = fd;
	connection->peer = peer;
	if (!server->knows_peers)
		connection->start = identity_start(connection->peer.pid);
	/* What it says is read in its user's turn: all others wait while the queue is emptied. */
	line_up(connection);
}

/* No descriptor is left: this one client is turned away, rather than all of them left waiting. */
static void turn_away(struct server *server)
{
	int fd;

	close(server->spare);
	fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_seldom(server->log, &server->turned_away, LOG_WARN,
		   "no descriptor is left for another client");
}

static int on_client(sd_event_source *source, int listener, uint32_t events, void *closure)
{
	struct server *server = closure;

	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			welcome(server, fd);
		else if (errno == EMFILE || errno == ENFILE)
			turn_away(server);
		else if (errno == EAGAIN)
			break;
	}
	return 0;
}

bool server_is_admin(const struct request *request, const gid_t *group)
{
	gid_t groups[256];
	socklen_t size = sizeof(groups);

	if (request->uid == 0 || request->uid == geteuid())
		return true;
	if (!group)
		return false;
	if (request->gid == *group)
		return true;
	if (getsockopt(request->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		return false;
	for (unsigned i = 0; i < size / sizeof(groups[0]); i++)
		if (groups[i] == *group)
			return true;
	return false;
}

/* ---- the place */

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un result = { .sun_family = AF_UNIX };

	strcpy(result.sun_path, path);
	return result;
}

/* What is at the path of a socket. */
enum place { PLACE_FREE, PLACE_DEAD, PLACE_PLANTED };

/* Where everybody may make files, the name is no other user's to have: root takes it. */
static bool is_planted(const char *path, const struct stat *status)
{
	const char *slash = strrchr(path, '/');
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat above;

	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	return geteuid() == 0 && status->st_uid != 0 && !stat(directory, &above) &&
	       above.st_uid == 0 && above.st_mode & S_ISVTX;
}

/* An enum place: only a dead socket of our own, or what a stranger planted, is replaced. */
static int place_check(const char *path, char problem[SERVER_PROBLEM])
{
	struct sockaddr_un there = address(path);
	struct stat status;
	int fd, answers;

	if (lstat(path, &status)) {
		if (errno == ENOENT)
			return PLACE_FREE;
		snprintf(problem, SERVER_PROBLEM, "socket %s: %s", path, strerror(errno));
		return -errno;
	}
	if (is_planted(path, &status))
		return PLACE_PLANTED;
	if (!S_ISSOCK(status.st_mode) || status.st_uid != geteuid()) {
		snprintf(problem, SERVER_PROBLEM,
			 "socket %s: there is %s there; it is neither used nor removed", path,
			 !S_ISSOCK(status.st_mode) ? "something that is no socket" :
						     "another user's socket");
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	answers = fd >= 0 && (!connect(fd, (struct sockaddr *)&there, sizeof(there)) ||
			      errno == EAGAIN || errno == EINPROGRESS);
	if (fd >= 0)
		close(fd);
	if (answers) {
		snprintf(problem, SERVER_PROBLEM, "socket %s: another collector serves it", path);
		return -EADDRINUSE;
	}
	return PLACE_DEAD;
}

/* Binds to a name in the directory that nobody else has. Through /proc, so that the name
 * may be longer than the socket's own. */
static int bind_beside(int socket, int directory, char ret_name[16])
{
	/* Everybody may connect. The mode comes with the name: a chmod would follow a link that
	 * somebody put there meanwhile. */
	mode_t before = umask(0111);
	int result = -EADDRINUSE;

	for (int attempt = 0; attempt < 8; attempt++) {
		struct sockaddr_un there = { .sun_family = AF_UNIX };
		uint32_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
			result = -EIO;
			break;
		}
		snprintf(ret_name, 16, ".rdma%08x", number);
		snprintf(there.sun_path, sizeof(there.sun_path), "/proc/self/fd/%d/%s", directory,
			 ret_name);
		result = bind(socket, (struct sockaddr *)&there, sizeof(there)) ? -errno : 0;
		if (result != -EADDRINUSE)
			break;
	}
	umask(before);
	return result;
}

/* A file or a directory may be dear to somebody, and is kept beside the socket. */
static void planted_remove(struct server *server, int directory, const char *temporary)
{
	struct stat status;

	if (fstatat(directory, temporary, &status, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
		log_write(server->log, LOG_WARN,
			  "socket %s: what user %u had put there is beside it now, as %s",
			  server->path, (unsigned)status.st_uid, temporary);
		return;
	}
	log_write(server->log, LOG_WARN, "socket %s: what user %u had put there was removed",
		  server->path, (unsigned)status.st_uid);
	unlinkat(directory, temporary, 0);
}

/* Listens under a new name and gives it that of the path: who connects finds the old socket
 * or the new one, never none. Where nothing was, nothing is replaced either. */
static int listen_at(struct server *server, int directory, const char *name, enum place old)
{
	static const unsigned how[] = { [PLACE_FREE] = RENAME_NOREPLACE,
					[PLACE_DEAD] = 0,
					[PLACE_PLANTED] = RENAME_EXCHANGE };
	char temporary[16];
	int result;

	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0)
		return -errno;
	result = bind_beside(server->fd, directory, temporary);
	if (result < 0)
		return result;
	if (!listen(server->fd, BACKLOG) &&
	    !renameat2(directory, temporary, directory, name, how[old]) &&
	    !fstatat(directory, name, &server->place, AT_SYMLINK_NOFOLLOW)) {
		if (old == PLACE_PLANTED)
			planted_remove(server, directory, temporary);
		return 0;
	}
	result = -errno;
	unlinkat(directory, temporary, 0);
	return result;
}

static int place_take(struct server *server, char problem[SERVER_PROBLEM])
{
	char directory_path[sizeof(server->path)];
	const char *slash = strrchr(server->path, '/');
	int directory, result, old = place_check(server->path, problem);

	if (old < 0)
		return old;
	snprintf(directory_path, sizeof(directory_path), "%.*s",
		 slash ? (int)(slash - server->path + 1) : 1, slash ? server->path : ".");
	directory = open(directory_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0) {
		result = listen_at(server, directory, slash ? slash + 1 : server->path,
				   (enum place)old);
		close(directory);
	} else {
		result = -errno;
	}
	if (result < 0)
		snprintf(problem, SERVER_PROBLEM, "socket %s: %s", server->path, strerror(-result));
	return result;
}

static bool kernel_knows_peers(void)
{
	int pair[2], fd = -1;
	socklen_t size = sizeof(fd);
	bool knows;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	knows = !getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &size);
	if (fd >= 0)
		close(fd);
	close(pair[0]);
	close(pair[1]);
	return knows;
}

int server_new(struct server **ret_server, sd_event *event, const char *path, const struct log *log,
	       server_function *answer, void *closure, char problem[SERVER_PROBLEM])
{
	struct server *server;
	int result;

	if (strlen(path) >= sizeof(server->path)) {
		snprintf(problem, SERVER_PROBLEM, "socket %.100s...: the path is too long", path);
		return -ENAMETOOLONG;
	}
	server = calloc(1, sizeof(*server));
	if (!server) {
		snprintf(problem, SERVER_PROBLEM, "no memory");
		return -ENOMEM;
	}
	server->event = sd_event_ref(event);
	server->log = log;
	server->answer = answer;
	server->closure = closure;
	server->fd = -1;
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	server->parked.next = server->parked.previous = &server->parked;
	server->held.next = server->held.previous = &server->held;
	server->kept.next = server->kept.previous = &server->kept;
	for (struct line *line = server->line; line < server->line + LINES; line++)
		line->ready.next = line->ready.previous = &line->ready;
	server->knows_peers = kernel_knows_peers();
	strcpy(server->path, path);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	result = server->epoll < 0 ? -errno : place_take(server, problem);
	if (result < 0)
		goto failed;
	result = sd_event_add_io(event, &server->listener, server->fd, EPOLLIN, on_client, server);
	if (result >= 0)
		result = sd_event_add_io(event, &server->ready, server->epoll, EPOLLIN, on_ready,
					 server);
	if (result >= 0)
		result = sd_event_add_time_relative(event, &server->timer, CLOCK_MONOTONIC, 0, 0,
						    on_timer, server);
	if (result >= 0)
		result = sd_event_add_time_relative(event, &server->turn, CLOCK_MONOTONIC, 0, 1,
						    on_turn, server);
	if (result >= 0)
		result = sd_event_source_set_enabled(server->turn, SD_EVENT_OFF);
	if (result < 0) {
		snprintf(problem, SERVER_PROBLEM, "event loop: %s", strerror(-result));
		goto failed;
	}
	sd_event_source_set_enabled(server->timer, SD_EVENT_OFF);
	*ret_server = server;
	return 0;
failed:
	server_free(server);
	return result;
}

void server_free(struct server *server)
{
	struct stat status;

	while (server->parked.next != &server->parked)
		connection_free(server->parked.next);
	while (server->held.next != &server->held)
		connection_free(server->held.next);
	while (server->kept.next != &server->kept)
		connection_free(server->kept.next);
	for (struct line *line = server->line; line < server->line + LINES; line++)
		while (line->ready.next != &line->ready)
			connection_free(line->ready.next);
	sd_event_source_disable_unref(server->listener);
	sd_event_source_disable_unref(server->timer);
	sd_event_source_disable_unref(server->turn);
	sd_event_source_disable_unref(server->ready);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->place.st_ino && !lstat(server->path, &status) &&
	    status.st_ino == server->place.st_ino && status.st_dev == server->place.st_dev)
		unlink(server->path);
	if (server->fd >= 0)
		close(server->fd);
	close(server->spare);
	sd_event_unref(server->event);
	free(server);
}
