/* SPDX-License-Identifier: MIT */
/*
 * HTTP: the only file that knows libmicrohttpd. It turns connections into requests (request.h)
 * and answers into bytes, and ends connections that take too long, whatever they do meanwhile.
 */
#ifndef DASHBOARD_HTTP_H
#define DASHBOARD_HTTP_H

#include "base/problem.h"

struct dashboard;
struct http;

enum {
	HTTP_CONNECTIONS = 512,
	HTTP_MEMORY = 16 << 10, /* of a connection: its headers must fit */
	HTTP_EXCHANGE_S = 20,	  /* usually: a request and its answer, from first to last byte */
	HTTP_THREADS = 4,
};

/* A request and its answer get so many seconds; a client that neither sends nor takes anything, no
 * more. */
struct http *http_make(struct dashboard *dashboard, unsigned exchange_seconds);

/* Serves a listening socket, which it takes. 0 or -errno with a sentence. */
int http_listen(struct http *http, int fd, char problem[PROBLEM_SIZE]);

/* To be called each second: ends what takes too long. */
void http_sweep(struct http *http);

void http_end(struct http *http);

#endif
