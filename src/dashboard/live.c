/* SPDX-License-Identifier: MIT */
/* Streams of events; see live.h. */
#include "dashboard/live.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/state.h"
#include "output/form.h"
#include "output/memory.h"
#include "view/owner.h"

struct live_stream {
	struct live *live;
	struct live_stream *next;
	void (*wake)(void *closure);
	void *closure;
	struct text waiting;
	size_t read; /* of waiting */
	bool asleep;
	bool ended;
};

struct live {
	pthread_mutex_t lock; /* of everything */
	struct live_stream *streams;
	unsigned count;
	bool ended;
};

struct live *live_make(void)
{
	struct live *live = memory_need(calloc(1, sizeof(*live)));

	pthread_mutex_init(&live->lock, NULL);
	return live;
}

/* ---- messages */

static void status_message_write(struct text *text, const struct sample *sample)
{
	json_t *problem = form_json_text(sample->problem);
	char *written = memory_need(json_dumps(problem, JSON_ENCODE_ANY | JSON_ENSURE_ASCII));

	text_print(text, "event: status\ndata: {\"time\":%llu,\"problem\":%s,\"collector\":",
		   (unsigned long long)(sample->time_ns / 1000000000), written);
	state_write_collector(text, sample);
	text_add(text, ",\"host\":");
	state_write_host(text, sample);
	text_add(text, "}\n\n");
	free(written);
	json_decref(problem);
}

static bool is_tenant(const struct proto_row *row)
{
	return row->scope == ROW_TENANT && !row->device[0];
}

/* The row of the same tenant; the order of rows seldom changes, so it is looked for there first. */
static const struct proto_row *tenant_find(const struct sample *sample, size_t expected,
					   const char *name)
{
	if (expected < sample->rows.count) {
		const struct proto_row *row = list_at(&sample->rows, expected);

		if (is_tenant(row) && !strcmp(row->tenant, name))
			return row;
	}
	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);

		if (is_tenant(row) && !strcmp(row->tenant, name))
			return row;
	}
	return NULL;
}

/* The tenants that changed or came, and the names of those that went. NULL: all are new. */
static void tenants_message_write(struct text *text, const struct sample *before,
				  const struct sample *after)
{
	struct text changed = { .data = NULL }, removed = { .data = NULL };

	for (size_t i = 0; i < after->rows.count; i++) {
		const struct proto_row *row = list_at(&after->rows, i), *old;

		if (!is_tenant(row))
			continue;
		old = before ? tenant_find(before, i, row->tenant) : NULL;
		if (old && !memcmp(old, row, sizeof(*row)))
			continue;
		state_next(&changed);
		state_write_owner(&changed, tenant_columns, row);
	}
	for (size_t i = 0; before && i < before->rows.count; i++) {
		const struct proto_row *row = list_at(&before->rows, i);
		json_t *name;
		char *written;

		if (!is_tenant(row) || tenant_find(after, i, row->tenant))
			continue;
		name = form_json_text(row->tenant);
		written = memory_need(json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII));
		state_next(&removed);
		text_add(&removed, written);
		free(written);
		json_decref(name);
	}
	if (changed.length || removed.length) {
		text_add(text, "event: tenants\ndata: {\"changed\":[");
		text_append(text, changed.data, changed.length);
		text_add(text, "],\"removed\":[");
		text_append(text, removed.data, removed.length);
		text_add(text, "]}\n\n");
	}
	text_free(&changed);
	text_free(&removed);
}

/* ---- streams */

static void stream_wake(struct live_stream *stream)
{
	if (!stream->asleep)
		return;
	stream->asleep = false;
	stream->wake(stream->closure);
}

static void stream_write(struct live_stream *stream, const struct text *text)
{
	if (stream->waiting.length - stream->read + text->length > LIVE_WAITING_MOST)
		stream->ended = true;
	else
		text_append(&stream->waiting, text->data, text->length);
	stream_wake(stream);
}

static void live_send(struct live *live, struct text *text)
{
	pthread_mutex_lock(&live->lock);
	for (struct live_stream *stream = live->streams; stream; stream = stream->next)
		stream_write(stream, text);
	pthread_mutex_unlock(&live->lock);
	text_free(text);
}

static bool live_is_followed(struct live *live)
{
	bool followed;

	pthread_mutex_lock(&live->lock);
	followed = live->streams != NULL;
	pthread_mutex_unlock(&live->lock);
	return followed;
}

void live_publish(struct live *live, const struct sample *before, const struct sample *after)
{
	struct text text = { .data = NULL };

	if (!live_is_followed(live))
		return;
	status_message_write(&text, after);
	/* Without a collector nothing is known to have changed. */
	if (after->up)
		tenants_message_write(&text, before->up ? before : NULL, after);
	live_send(live, &text);
}

void live_publish_event(struct live *live, const struct proto_event *event)
{
	struct text text = { .data = NULL };

	if (!live_is_followed(live))
		return;
	text_add(&text, "event: event\ndata: ");
	state_write_event(&text, event);
	text_add(&text, "\n\n");
	live_send(live, &text);
}

struct live_stream *live_open(struct live *live, const struct sample *sample,
			      void (*wake)(void *closure), void *closure)
{
	struct live_stream *stream = memory_need(calloc(1, sizeof(*stream)));

	*stream = (struct live_stream){ .live = live, .wake = wake, .closure = closure };
	text_add(&stream->waiting, "retry: 2000\n\n");
	status_message_write(&stream->waiting, sample);
	tenants_message_write(&stream->waiting, NULL, sample);
	pthread_mutex_lock(&live->lock);
	if (live->count >= LIVE_STREAMS || live->ended) {
		pthread_mutex_unlock(&live->lock);
		text_free(&stream->waiting);
		free(stream);
		return NULL;
	}
	live->count++;
	stream->next = live->streams;
	live->streams = stream;
	pthread_mutex_unlock(&live->lock);
	return stream;
}

void live_close(struct live_stream *stream)
{
	struct live *live = stream->live;

	pthread_mutex_lock(&live->lock);
	for (struct live_stream **at = &live->streams; *at; at = &(*at)->next)
		if (*at == stream) {
			*at = stream->next;
			live->count--;
			break;
		}
	pthread_mutex_unlock(&live->lock);
	text_free(&stream->waiting);
	free(stream);
}

ssize_t live_read(struct live_stream *stream, char *data, size_t most, void (*wait)(void *closure))
{
	ssize_t length = 0;

	pthread_mutex_lock(&stream->live->lock);
	if (stream->read < stream->waiting.length) {
		size_t left = stream->waiting.length - stream->read;

		length = (ssize_t)(left < most ? left : most);
		memcpy(data, stream->waiting.data + stream->read, (size_t)length);
		stream->read += (size_t)length;
		if (stream->read == stream->waiting.length)
			stream->read = stream->waiting.length = 0;
	} else if (stream->ended) {
		length = -1;
	} else {
		wait(stream->closure);
		stream->asleep = true;
	}
	pthread_mutex_unlock(&stream->live->lock);
	return length;
}

void live_end(struct live *live)
{
	pthread_mutex_lock(&live->lock);
	live->ended = true;
	for (struct live_stream *stream = live->streams; stream; stream = stream->next) {
		stream->ended = true;
		stream_wake(stream);
	}
	pthread_mutex_unlock(&live->lock);
}

void answer_live(struct dashboard *dashboard, const struct request *request, struct answer *answer)
{
	answer->status = 200;
	answer->type = "text/event-stream";
	answer->live = true;
}
