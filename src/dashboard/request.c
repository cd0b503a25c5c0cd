/* SPDX-License-Identifier: MIT */
/*
 * From a request to its answer: which paths there are, and what is refused before any of them is
 * asked. A page of another site must not reach us through a browser on this host: neither by a
 * name of its own that leads here (Host), nor by a request in the user's name (Origin).
 */
#include "dashboard/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/page.h"
#include "output/form.h"
#include "output/memory.h"

struct route {
	const char *method;
	const char *path;
	void (*answer)(struct dashboard *dashboard, const struct request *request,
		       struct answer *answer);
};

static const struct route routes[] = {
	{ "GET", "/", answer_index },
	{ "GET", "/metrics", answer_metrics },
	{ "GET", "/api/state", answer_state },
	{ "GET", "/api/kinds", answer_kinds },
	{ "GET", "/api/tenant", answer_tenant },
	{ "GET", "/api/devices", answer_devices },
	{ "GET", "/api/token", answer_token },
	{ "GET", "/api/events", answer_events },
	{ "GET", "/api/history", answer_history },
	{ "GET", "/api/live", answer_live },
	{ "GET", "/api/limits", answer_policy },
	{ "GET", "/api/advice", answer_advice },
	{ "POST", "/api/limits", answer_limits },
};
enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

void answer_json(struct answer *answer, unsigned status, struct text *text)
{
	answer->status = status;
	answer->type = "application/json";
	answer->body = body_make(text);
}

void answer_fail(struct answer *answer, unsigned status, const char *format, ...)
{
	struct text text = { .data = NULL };
	json_t *document = memory_need(json_object());
	char sentence[1024], *written;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	json_object_set_new(document, "error", form_json_text(sentence));
	written = memory_need(json_dumps(document, JSON_ENSURE_ASCII));
	text_print(&text, "%s\n", written);
	free(written);
	json_decref(document);
	answer_json(answer, status, &text);
}

/* Whether "NAME", "NAME:PORT" or "[NAME]:PORT" has a name that leads to us on purpose. */
static bool host_is_ours(const struct dashboard *dashboard, const char *host)
{
	const char *begin = host, *end = host + strcspn(host, ":");

	if (*host == '[') {
		begin++;
		end = begin + strcspn(begin, "]");
	}
	for (unsigned i = 0; i < dashboard->names_count; i++)
		if (strlen(dashboard->names[i]) == (size_t)(end - begin) &&
		    !strncasecmp(dashboard->names[i], begin, (size_t)(end - begin)))
			return true;
	return false;
}

/* Whether the page that sent the request came from the same address. */
static bool origin_is_ours(const struct request *request)
{
	static const char *const schemes[] = { "http://", "https://" };

	if (request->site && strcmp(request->site, "same-origin") && strcmp(request->site, "none"))
		return false;
	if (!request->origin)
		return true;
	for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t length = strlen(schemes[i]);

		if (!strncasecmp(request->origin, schemes[i], length))
			return !strcasecmp(request->origin + length, request->host);
	}
	return false;
}

static void request_route(struct dashboard *dashboard, const struct request *request,
			  struct answer *answer)
{
	const char *method = strcmp(request->method, "HEAD") ? request->method : "GET";
	const char *allow = NULL;

	if (!strcmp(method, "GET") && page_answer(request, answer))
		return;
	for (unsigned i = 0; i < ROUTES; i++) {
		if (strcmp(routes[i].path, request->path))
			continue;
		if (!strcmp(routes[i].method, method)) {
			routes[i].answer(dashboard, request, answer);
			return;
		}
		allow = routes[i].method;
	}
	if (allow) {
		answer_fail(answer, 405, "%s: this path takes %s only", request->path, allow);
		answer->allow = allow;
	} else {
		answer_fail(answer, 404, "%.200s: there is no such path", request->path);
	}
}

void request_answer(struct dashboard *dashboard, const struct request *request,
		    struct answer *ret_answer)
{
	*ret_answer = (struct answer){ .status = 0 };
	if (!request->host || !host_is_ours(dashboard, request->host))
		answer_fail(ret_answer, 403,
			    "Host: unknown name '%.100s': expected the address of this program, or "
			    "a name of --host",
			    request->host ? request->host : "");
	else if (strcmp(request->path, "/") && !origin_is_ours(request))
		answer_fail(ret_answer, 403,
			    "Origin: another site: expected a request of our own page");
	else if (request->too_large)
		answer_fail(ret_answer, 413, "the body is too large: expected at most %d bytes",
			    REQUEST_BODY_MOST);
	else
		request_route(dashboard, request, ret_answer);
}
