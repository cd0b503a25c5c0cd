/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer, without the library that speaks HTTP: so the fuzz target and the
 * server give the same requests to the same function.
 */
#ifndef DASHBOARD_REQUEST_H
#define DASHBOARD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "dashboard/text.h"

struct dashboard;

/* What a request says of itself; NULL where it does not. The texts are anybody's. */
struct request {
	const char *method;
	const char *path;
	const char *host;
	const char *origin;
	const char *site; /* Sec-Fetch-Site */
	const char *authorization;
	const char *content_type;
	const char *accept;
	const char *accept_encoding;
	const char *if_none_match;
	const char *tenant, *section, *resource, *since, *step; /* of the query */
	const char *body;
	size_t length;
	bool too_large;	     /* the body was cut */
	const char *who;     /* where it comes from, for events: "127.0.0.1:4711" */
};

enum { REQUEST_BODY_MOST = 8192 };

struct page_file;

struct answer {
	unsigned status;
	const char *type;
	const char *allow; /* of 405: which method; otherwise NULL */
	struct body *body; /* the receiver releases it */
	const struct page_file *file; /* of the page, in place of a body; of 304: which one */
	bool live;	   /* events follow as they come, for as long as the client stays */
};

void request_answer(struct dashboard *dashboard, const struct request *request,
		    struct answer *ret_answer);

/* For the functions that answer one path: a document, or {"error": sentence}. */
void answer_json(struct answer *answer, unsigned status, struct text *text);
void answer_fail(struct answer *answer, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
