/* SPDX-License-Identifier: MIT */
/*
 * Many clients of HTTP that do what no client should: `dashboard_hostile PORT COUNT`. Those that
 * the server cuts off come again. It prints a line when every client of the sorts that the server
 * must not keep was cut off at least once, and goes on until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MOST = 1000, TICK_MS = 100, HUGE = 1 << 20 };

struct sort {
	const char *name;
	const char *text;   /* what it sends at first; NULL: random bytes */
	const char *drop;   /* then this, a byte in each tick; NULL: nothing more */
	size_t filler;	    /* before the drops: so many letters */
	bool deaf;	    /* it reads nothing */
	bool leaves;	    /* it closes the connection itself */
	bool may_stay;	    /* the server need not cut it off */
	bool fuzzed;	    /* in each tick a good request that is changed at random */
};

#define HOST "Host: localhost\r\n"
static const struct sort sorts[] = {
	{ .name = "slow head", .text = "GET /metrics HTTP/1.1\r\n" HOST "X-A: ", .drop = "a" },
	{ .name = "slow line", .text = "GET /", .drop = "a" },
	{ .name = "slow body",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST "Content-Length: 8000\r\n\r\n",
	  .drop = "a" },
	{ .name = "slow chunks",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
	  .drop = "1\r\na\r\n" },
	{ .name = "silent", .text = "" },
	{ .name = "huge head", .text = "GET / HTTP/1.1\r\n" HOST "X-A: ", .filler = HUGE },
	{ .name = "huge line", .text = "GET /", .filler = HUGE },
	{ .name = "huge body",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST "Content-Length: 999999999999\r\n\r\n",
	  .filler = HUGE },
	{ .name = "bad chunks",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\nzzz\r\n-1\r\n" },
	{ .name = "bad length",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nabc" },
	{ .name = "two lengths",
	  .text = "POST /api/limits HTTP/1.1\r\n" HOST
		  "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde" },
	{ .name = "path up",
	  .text = "GET /../../../../etc/passwd HTTP/1.1\r\n" HOST "\r\n"
		  "GET /%2e%2e/%2e%2e/etc/passwd%00 HTTP/1.1\r\n" HOST "\r\n"
		  "GET //metrics/..//api/state;x?%00=%ff HTTP/1.1\r\n" HOST "\r\n" },
	{ .name = "deaf",
	  .text = "GET /api/state HTTP/1.1\r\n" HOST "\r\nGET /api/state HTTP/1.1\r\n" HOST "\r\n",
	  .deaf = true,
	  .may_stay = true },
	{ .name = "deaf live",
	  .text = "GET /api/live HTTP/1.1\r\n" HOST "\r\n",
	  .deaf = true,
	  .may_stay = true },
	{ .name = "leaves", .text = "GET /api/live HTTP/1.1\r\n" HOST "\r\n", .leaves = true },
	{ .name = "bytes" },
	{ .name = "fuzzed", .text = "", .fuzzed = true, .may_stay = true },
};
enum { SORTS = sizeof(sorts) / sizeof(sorts[0]) };

struct client {
	const struct sort *sort;
	int fd; /* -1: not connected */
	size_t filled;
	unsigned cut; /* so often */
};

static struct client clients[CLIENTS_MOST];
static char letters[4096];

static void client_send(const struct client *client, const void *data, size_t size)
{
	/* What does not fit is lost: these are no careful clients. */
	if (send(client->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static void client_send_fuzzed(const struct client *client)
{
	static const char *const requests[] = {
		"GET /metrics HTTP/1.1\r\n" HOST "Accept: application/openmetrics-text\r\n\r\n",
		"GET /api/state HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n",
		"GET /api/tenant?tenant=ours HTTP/1.1\r\n" HOST "\r\n",
		"GET /api/history?tenant=ours&resource=qp&since=2h&step=10 HTTP/1.1\r\n" HOST "\r\n",
		"GET /api/events?since=2h HTTP/1.1\r\n" HOST "\r\n",
		"POST /api/limits HTTP/1.1\r\n" HOST "Authorization: Bearer 0123\r\nContent-Length: "
		"45\r\n\r\n{\"section\":\"tenant ours\",\"set\":{\"qp\":\"7\"}}\n",
	};
	const char *good = requests[(unsigned)rand() % (sizeof(requests) / sizeof(requests[0]))];
	size_t length = strlen(good);
	char request[512];

	memcpy(request, good, length);
	for (int changes = rand() % 8; changes > 0; changes--) {
		size_t place = (size_t)rand() % length;

		if (rand() % 2) {
			request[place] = (char)rand();
		} else if (length > 1) {
			memmove(request + place, request + place + 1, length - place - 1);
			length--;
		}
	}
	client_send(client, request, length);
}

static void client_connect(struct client *client, unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned char bytes[256];

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	client->filled = 0;
	if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof(address))) {
		if (client->fd >= 0)
			close(client->fd);
		client->fd = -1;
		return;
	}
	if (client->sort->text) {
		client_send(client, client->sort->text, strlen(client->sort->text));
		return;
	}
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand();
	client_send(client, bytes, sizeof(bytes));
}

/* Whether the server has closed the connection; reads what it sent unless the client is deaf. */
static bool client_was_cut(const struct client *client)
{
	struct pollfd look = { .fd = client->fd, .events = POLLRDHUP };
	char data[4096];
	ssize_t length;

	if (poll(&look, 1, 0) > 0 && look.revents & (POLLERR | POLLHUP | POLLRDHUP))
		return true;
	if (client->sort->deaf)
		return false;
	while ((length = recv(client->fd, data, sizeof(data), MSG_DONTWAIT)) > 0)
		;
	return length == 0 || (errno != EAGAIN && errno != EINTR);
}

static void client_work(struct client *client, unsigned port)
{
	const struct sort *sort = client->sort;

	if (client->fd < 0)
		client_connect(client, port);
	if (client->fd < 0)
		return;
	if (client_was_cut(client) || sort->leaves) {
		client->cut++;
		close(client->fd);
		client->fd = -1;
		return;
	}
	for (int i = 0; i < 16 && client->filled < sort->filler; i++) {
		client_send(client, letters, sizeof(letters));
		client->filled += sizeof(letters);
	}
	if (sort->drop)
		client_send(client, sort->drop, strlen(sort->drop));
	if (sort->fuzzed)
		client_send_fuzzed(client);
}

static bool all_were_cut(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!clients[i].sort->may_stay && !clients[i].cut)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	unsigned port = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	bool told = false;

	if (!port || !count || count > CLIENTS_MOST) {
		fprintf(stderr, "usage: dashboard_hostile PORT COUNT\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	memset(letters, 'a', sizeof(letters));
	for (unsigned i = 0; i < count; i++)
		clients[i] = (struct client){ .sort = &sorts[i % SORTS], .fd = -1 };
	for (;; poll(NULL, 0, TICK_MS)) {
		for (unsigned i = 0; i < count; i++)
			client_work(&clients[i], port);
		if (!told && all_were_cut(count)) {
			puts("all were cut off");
			fflush(stdout);
			told = true;
		}
	}
}
