/* SPDX-License-Identifier: MIT */
/* /api/history and /api/events: what was, from memory and from disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/feed.h"
#include "dashboard/recent.h"
#include "dashboard/state.h"
#include "history/span.h"
#include "output/form.h"
#include "output/memory.h"
#include "terms/kinds.h"
#include "terms/size.h"

enum { EVENTS_MOST = 2000, POINTS_MOST = 200000, DEFAULT_SPAN_S = RECENT_SECONDS };

/* ---- events */

struct event_writing {
	struct text text;
	const char *tenant; /* NULL: of all */
};

static void event_write_kept(const struct feed_event *event, void *closure)
{
	struct event_writing *writing = closure;

	if (writing->tenant && strcmp(writing->tenant, event->event.tenant))
		return;
	state_next(&writing->text);
	state_write_event(&writing->text, &event->event);
}

static int event_write_document(const char *document, void *closure)
{
	struct event_writing *writing = closure;

	state_next(&writing->text);
	text_add(&writing->text, document);
	return 0;
}

/* Whether the moment is one; the answer says so if not. */
static bool since_read(const struct request *request, int64_t now, int64_t *ret_since,
		       struct answer *answer)
{
	if (!request->since || !span_parse(request->since, now, ret_since))
		return true;
	answer_fail(answer, 400, "since: invalid value '%.60s': expected " SPAN_EXPECTED,
		    request->since);
	return false;
}

/* Opens the history on disk; NULL after the answer says why not. */
static struct history *past_open(struct dashboard *dashboard, struct answer *answer)
{
	char problem[PROBLEM_SIZE];
	struct history *history;

	if (!dashboard->history_path[0]) {
		answer_fail(answer, 404, "no history is kept: this program runs without one");
		return NULL;
	}
	if (history_open_reader(dashboard->history_path, &history, problem) < 0) {
		answer_fail(answer, 503, "%s", problem);
		return NULL;
	}
	return history;
}

static void past_fail(struct answer *answer, int error)
{
	if (error == -ETIMEDOUT)
		answer_fail(answer, 503, "the history is too large for this question: ask for less "
					 "time, for one tenant, or for one resource");
	else if (error == -E2BIG)
		answer_fail(answer, 400, "too many points: at most %d; ask for a longer step, one "
					 "tenant or one resource", POINTS_MOST);
	else
		answer_fail(answer, 503, "the history cannot be read: %s", strerror(-error));
}

void answer_events(struct dashboard *dashboard, const struct request *request,
		   struct answer *answer)
{
	struct event_writing writing = { .tenant = request->tenant };
	struct history *history;
	int64_t since;
	int result = 0;

	if (!since_read(request, time(NULL), &since, answer))
		return;
	text_add(&writing.text, "{\"events\":[");
	if (request->since) {
		history = past_open(dashboard, answer);
		if (!history) {
			text_free(&writing.text);
			return;
		}
		result = history_read_events(history, request->tenant, since, EVENTS_MOST,
					     event_write_document, &writing);
		history_close(history);
	} else {
		feed_visit(dashboard->feed, event_write_kept, &writing);
	}
	if (result < 0) {
		text_free(&writing.text);
		past_fail(answer, result);
		return;
	}
	text_add(&writing.text, "]}\n");
	answer_json(answer, 200, &writing.text);
}

/* ---- history */

struct point_writing {
	struct text text;
	unsigned count;
	char tenant[NAME_SIZE];
	char resource[NAME_SIZE];
};

static void name_write(struct text *text, const char *name)
{
	json_t *json = *name ? form_json_text(name) : memory_need(json_null());
	char *written = memory_need(json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII));

	text_add(text, written);
	free(written);
	json_decref(json);
}

static int point_write(const char *tenant, const char *resource, const struct history_point *point,
		       void *closure)
{
	struct point_writing *writing = closure;
	struct text *text = &writing->text;

	if (writing->count++ >= POINTS_MOST)
		return -E2BIG;
	if (writing->count == 1 || strcmp(writing->tenant, tenant) ||
	    strcmp(writing->resource, resource)) {
		snprintf(writing->tenant, sizeof(writing->tenant), "%s", tenant);
		snprintf(writing->resource, sizeof(writing->resource), "%s", resource);
		text_add(text, writing->count == 1 ? "{\"tenant\":" : "]},{\"tenant\":");
		name_write(text, tenant);
		text_add(text, ",\"resource\":");
		name_write(text, resource);
		text_add(text, ",\"points\":[");
	}
	state_next(text);
	text_print(text, "[%lld,%llu,%llu,", (long long)point->time, (unsigned long long)point->used,
		   (unsigned long long)point->most);
	if (point->limit == UNLIMITED)
		text_add(text, "null");
	else
		text_add_number(text, (int64_t)point->limit);
	text_print(text, ",%llu]", (unsigned long long)point->refused);
	return 0;
}

static bool step_read(const struct request *request, int *ret_step, struct answer *answer)
{
	uint64_t step;

	*ret_step = 0;
	if (!request->step)
		return true;
	if (!size_parse(request->step, strlen(request->step), 1, false, &step) && step >= 1 &&
	    step <= 86400) {
		*ret_step = (int)step;
		return true;
	}
	answer_fail(answer, 400, "step: invalid value '%.60s': expected 1 to 86400 seconds",
		    request->step);
	return false;
}

/* Whether the resource is one that a history can have. */
static bool resource_is_known(const struct request *request, struct answer *answer)
{
	const char *resource = request->resource;

	if (!resource || !strcmp(resource, "processes") || kind_find(resource, strlen(resource)) >= 0)
		return true;
	answer_fail(answer, 404,
		    "resource: unknown resource '%.60s': expected processes, or a kind of 'rdma_intercept "
		    "show kind'",
		    resource);
	return false;
}

void answer_history(struct dashboard *dashboard, const struct request *request,
		    struct answer *answer)
{
	int64_t now = time(NULL), since = now - DEFAULT_SPAN_S;
	struct history_query query = { .tenant = request->tenant, .resource = request->resource };
	struct point_writing writing = { .count = 0 };
	struct history *history;
	bool in_memory;
	int result;

	if (!since_read(request, now, &since, answer) || !step_read(request, &query.step, answer) ||
	    !resource_is_known(request, answer))
		return;
	query.since = since;
	/* Whoever asks for the whole ten minutes asked a moment ago. */
	in_memory = query.step < HISTORY_TENS && since >= now - RECENT_SECONDS - 2;
	text_print(&writing.text, "{\"since\":%lld,\"step\":%d,\"series\":[", (long long)since,
		   in_memory ? 1 : history_step(&query, now));
	if (in_memory) {
		result = recent_read(dashboard->recent, &query, now, point_write, &writing);
	} else {
		history = past_open(dashboard, answer);
		if (!history) {
			text_free(&writing.text);
			return;
		}
		result = history_read(history, &query, now, point_write, &writing);
		history_close(history);
	}
	if (result < 0) {
		text_free(&writing.text);
		past_fail(answer, result);
		return;
	}
	if (!writing.count && request->tenant && *request->tenant &&
	    !state_may_have_tenant(dashboard, request->tenant)) {
		text_free(&writing.text);
		answer_fail(answer, 404,
			    "tenant: neither the collector nor the history since then has a tenant '%.100s'",
			    request->tenant);
		return;
	}
	text_add(&writing.text, writing.count ? "]}]}\n" : "]}\n");
	answer_json(answer, 200, &writing.text);
}
