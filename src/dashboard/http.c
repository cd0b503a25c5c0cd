/* SPDX-License-Identifier: MIT */
/* The server; see http.h. */
#include "dashboard/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dashboard/dashboard.h"
#include "dashboard/live.h"
#include "dashboard/page.h"
#include "dashboard/request.h"
#include "output/memory.h"

enum { LISTENERS = 2, LIVE_BLOCK = 64 << 10, BODY_BLOCK = 64 << 10 };

/* A connection. The library of HTTP has a limit for silence only, and a client that sends a byte
 * in each of its periods would stay for ever. */
struct peer {
	TAILQ_ENTRY(peer) link;
	int fd;
	uint64_t begun_ns; /* of the present exchange */
	bool live;
};

struct http {
	struct dashboard *dashboard;
	unsigned exchange_seconds;
	struct MHD_Daemon *daemon[LISTENERS];
	unsigned daemons;
	pthread_mutex_t lock; /* of the peers */
	TAILQ_HEAD(peer_list, peer) peers;
};

/* A request whose body is still coming. */
struct exchange {
	struct text body;
	bool too_large;
};

/* A live answer: the stream, and the connection that it wakes. */
struct follower {
	struct live_stream *stream;
	struct MHD_Connection *connection;
};

/* ---- connections */

static struct peer *peer_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void peer_come_or_go(void *closure, struct MHD_Connection *connection, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	struct http *http = closure;
	struct peer *peer = *context;

	pthread_mutex_lock(&http->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		peer = memory_need(calloc(1, sizeof(*peer)));
		peer->fd = info ? info->connect_fd : -1;
		peer->begun_ns = clock_now_ns();
		TAILQ_INSERT_TAIL(&http->peers, peer, link);
		*context = peer;
	} else if (peer) {
		TAILQ_REMOVE(&http->peers, peer, link);
		free(peer);
		*context = NULL;
	}
	pthread_mutex_unlock(&http->lock);
}

void http_sweep(struct http *http)
{
	uint64_t now = clock_now_ns();
	struct peer *peer;

	pthread_mutex_lock(&http->lock);
	TAILQ_FOREACH (peer, &http->peers, link)
		if (!peer->live && peer->fd >= 0 &&
		    now - peer->begun_ns > (uint64_t)http->exchange_seconds * CLOCK_SECOND_NS)
			shutdown(peer->fd, SHUT_RDWR); /* its thread sees the end, and closes */
	pthread_mutex_unlock(&http->lock);
}

/* ---- live answers */

static void follower_wait(void *closure)
{
	MHD_suspend_connection(((struct follower *)closure)->connection);
}

static void follower_wake(void *closure)
{
	MHD_resume_connection(((struct follower *)closure)->connection);
}

static ssize_t follower_read(void *closure, uint64_t position, char *data, size_t most)
{
	struct follower *follower = closure;
	ssize_t length = live_read(follower->stream, data, most, follower_wait);

	return length < 0 ? (ssize_t)MHD_CONTENT_READER_END_OF_STREAM : length;
}

static void follower_free(void *closure)
{
	struct follower *follower = closure;

	live_close(follower->stream);
	free(follower);
}

static struct MHD_Response *live_response(struct http *http, struct MHD_Connection *connection,
					  struct answer *answer)
{
	struct follower *follower = memory_need(calloc(1, sizeof(*follower)));
	struct sample *sample = dashboard_sample(http->dashboard);
	struct peer *peer = peer_of(connection);
	struct MHD_Response *response;

	follower->connection = connection;
	follower->stream = live_open(http->dashboard->live, sample, follower_wake, follower);
	sample_release(sample);
	if (!follower->stream) {
		free(follower);
		answer_fail(answer, 503, "too many live pages: at most %d", LIVE_STREAMS);
		return NULL;
	}
	pthread_mutex_lock(&http->lock);
	if (peer)
		peer->live = true;
	pthread_mutex_unlock(&http->lock);
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, LIVE_BLOCK, follower_read,
						     follower, follower_free);
	return memory_need(response);
}

/* ---- requests */

static ssize_t body_read(void *closure, uint64_t position, char *data, size_t most)
{
	const struct body *body = closure;
	size_t left = body->text.length - (size_t)position;
	size_t length = left < most ? left : most;

	memcpy(data, body->text.data + position, length);
	return (ssize_t)length;
}

static void body_give_back(void *body)
{
	body_release(body);
}

static enum MHD_Result answer_send(struct http *http, struct MHD_Connection *connection,
				   struct answer *answer, bool head)
{
	static const struct {
		const char *name, *value;
	} always[] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
		  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
	};
	const struct page_file *file = answer->file;
	struct MHD_Response *response = NULL;
	enum MHD_Result result;

	if (answer->live && !head)
		response = live_response(http, connection, answer);
	if (!response && answer->body)
		response = MHD_create_response_from_callback(answer->body->text.length, BODY_BLOCK,
							     body_read, answer->body, body_give_back);
	else if (!response && file && answer->status == 200)
		response = MHD_create_response_from_buffer(file->length, (void *)file->data,
							   MHD_RESPMEM_PERSISTENT);
	else if (!response)
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	memory_need(response);
	for (unsigned i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		MHD_add_response_header(response, always[i].name, always[i].value);
	MHD_add_response_header(response, "Content-Type", answer->type);
	/* A browser keeps the page, and asks each time whether it is still this one. */
	MHD_add_response_header(response, "Cache-Control", file ? "no-cache" : "no-store");
	if (file) {
		MHD_add_response_header(response, "ETag", file->etag);
		MHD_add_response_header(response, "Vary", "Accept-Encoding");
		if (answer->status == 200)
			MHD_add_response_header(response, "Content-Encoding", "gzip");
	}
	if (answer->allow)
		MHD_add_response_header(response, "Allow", answer->allow);
	if (answer->status == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

/* "127.0.0.1:4711", or the user at the other end of a Unix socket. */
static void peer_name(struct MHD_Connection *connection, char *name, size_t size)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
	socklen_t length = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";
	struct ucred credentials;

	snprintf(name, size, "unknown");
	if (!info || getpeername(info->connect_fd, (struct sockaddr *)&address, &length))
		return;
	if (address.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)))
		snprintf(name, size, "%s:%u", host, ntohs(v4->sin_port));
	if (address.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)))
		snprintf(name, size, "[%s]:%u", host, ntohs(v6->sin6_port));
	length = sizeof(credentials);
	if (address.ss_family == AF_UNIX && !getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED,
							&credentials, &length))
		snprintf(name, size, "uid %u, pid %d", credentials.uid, credentials.pid);
}

static enum MHD_Result exchange_answer(struct http *http, struct MHD_Connection *connection,
				       const char *path, const char *method,
				       const struct exchange *exchange)
{
	char who[80];
	struct request request = {
		.method = method,
		.path = path,
		.body = exchange->body.data,
		.length = exchange->body.length,
		.too_large = exchange->too_large,
		.who = who,
	};
	const struct {
		enum MHD_ValueKind kind;
		const char *name, **value;
	} values[] = {
		{ MHD_HEADER_KIND, "Host", &request.host },
		{ MHD_HEADER_KIND, "Origin", &request.origin },
		{ MHD_HEADER_KIND, "Sec-Fetch-Site", &request.site },
		{ MHD_HEADER_KIND, "Authorization", &request.authorization },
		{ MHD_HEADER_KIND, "Content-Type", &request.content_type },
		{ MHD_HEADER_KIND, "Accept", &request.accept },
		{ MHD_HEADER_KIND, "Accept-Encoding", &request.accept_encoding },
		{ MHD_HEADER_KIND, "If-None-Match", &request.if_none_match },
		{ MHD_GET_ARGUMENT_KIND, "tenant", &request.tenant },
		{ MHD_GET_ARGUMENT_KIND, "section", &request.section },
		{ MHD_GET_ARGUMENT_KIND, "resource", &request.resource },
		{ MHD_GET_ARGUMENT_KIND, "since", &request.since },
		{ MHD_GET_ARGUMENT_KIND, "step", &request.step },
	};
	struct answer answer;

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		*values[i].value =
			MHD_lookup_connection_value(connection, values[i].kind, values[i].name);
	peer_name(connection, who, sizeof(who));
	request_answer(http->dashboard, &request, &answer);
	return answer_send(http, connection, &answer, !strcmp(method, "HEAD"));
}

static enum MHD_Result exchange_continue(void *closure, struct MHD_Connection *connection,
					 const char *path, const char *method, const char *version,
					 const char *data, size_t *length, void **context)
{
	struct exchange *exchange = *context;

	if (!exchange) {
		*context = memory_need(calloc(1, sizeof(*exchange)));
		return MHD_YES;
	}
	if (!*length)
		return exchange_answer(closure, connection, path, method, exchange);
	/* What is too much is read and forgotten, so that the client gets to its answer. */
	if (exchange->body.length + *length > REQUEST_BODY_MOST)
		exchange->too_large = true;
	else
		text_append(&exchange->body, data, *length);
	*length = 0;
	return MHD_YES;
}

static void exchange_end(void *closure, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	struct http *http = closure;
	struct exchange *exchange = *context;
	struct peer *peer = peer_of(connection);

	pthread_mutex_lock(&http->lock);
	if (peer) {
		peer->live = false;
		peer->begun_ns = clock_now_ns();
	}
	pthread_mutex_unlock(&http->lock);
	if (exchange)
		text_free(&exchange->body);
	free(exchange);
	*context = NULL;
}

/* The library complains of each odd client; that is not for the log. */
static void complaint_ignore(void *closure, const char *format, va_list arguments)
{
}

struct http *http_make(struct dashboard *dashboard, unsigned exchange_seconds)
{
	struct http *http = memory_need(calloc(1, sizeof(*http)));

	http->dashboard = dashboard;
	http->exchange_seconds = exchange_seconds;
	pthread_mutex_init(&http->lock, NULL);
	TAILQ_INIT(&http->peers);
	return http;
}

int http_listen(struct http *http, int fd, char problem[PROBLEM_SIZE])
{
	struct MHD_Daemon *daemon;

	if (http->daemons == LISTENERS)
		return problem_set(-EINVAL, problem, "too many addresses: at most %d", LISTENERS);
	daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		exchange_continue, http, MHD_OPTION_EXTERNAL_LOGGER, complaint_ignore, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)HTTP_THREADS,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, http->exchange_seconds,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, peer_come_or_go,
		http, MHD_OPTION_NOTIFY_COMPLETED, exchange_end, http, MHD_OPTION_END);
	if (!daemon) {
		close(fd);
		return problem_set(-EIO, problem, "the HTTP server cannot be started: %s",
				   strerror(errno));
	}
	http->daemon[http->daemons++] = daemon;
	return 0;
}

void http_end(struct http *http)
{
	live_end(http->dashboard->live);
	for (unsigned i = 0; i < http->daemons; i++)
		MHD_stop_daemon(http->daemon[i]);
}
