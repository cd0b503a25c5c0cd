/* SPDX-License-Identifier: MIT */
/*
 * The stream of changes; see etcd.h. The server sends one JSON document per line, for as long as it
 * likes. Both ranges are asked for in the same request, so that one connection is enough.
 */
#include "fleet/etcd_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/memory.h"

void etcd_watch_end(struct etcd *etcd)
{
	if (etcd->watch) {
		curl_multi_remove_handle(etcd->multi, etcd->watch);
		curl_easy_cleanup(etcd->watch);
		curl_slist_free_all(etcd->watch_headers);
	}
	free(etcd->watch_body);
	free(etcd->stream.text);
	etcd->watch = NULL;
	etcd->watch_headers = NULL;
	etcd->watch_body = NULL;
	etcd->stream = (struct etcd_text){ .text = NULL };
	etcd->watch_ended = false;
	etcd->watch_result = CURLE_OK;
}

static json_t *watch_request(const char *prefix, unsigned number, uint64_t revision)
{
	char text[24];
	json_t *create = memory_need(json_object());

	etcd_key_set(create, "key", prefix);
	etcd_range_end_set(create, prefix);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)revision);
	json_object_set_new(create, "start_revision", memory_need(json_string(text)));
	snprintf(text, sizeof(text), "%u", number + 1);
	json_object_set_new(create, "watch_id", memory_need(json_string(text)));
	return memory_need(json_pack("{s:o}", "create_request", create));
}

void etcd_watch(struct etcd *etcd, const char *const *prefixes, unsigned count, uint64_t revision)
{
	struct etcd_text body = { .text = NULL };

	etcd_watch_end(etcd);
	for (unsigned i = 0; i < count; i++) {
		json_t *request = watch_request(prefixes[i], i, revision);
		char *text = memory_need(json_dumps(request, JSON_COMPACT));

		etcd_text_add(text, 1, strlen(text), &body);
		json_decref(request);
		free(text);
	}
	etcd->watch_body = memory_need(body.text);
	etcd->watched = etcd->endpoint;
	etcd->watch = memory_need(curl_easy_init());
	etcd->watch_headers = etcd_request_prepare(etcd, etcd->watch, etcd->endpoint, "/v3/watch",
						   etcd->watch_body);
	etcd->watch_error[0] = '\0';
	curl_easy_setopt(etcd->watch, CURLOPT_WRITEDATA, &etcd->stream);
	curl_easy_setopt(etcd->watch, CURLOPT_ERRORBUFFER, etcd->watch_error);
	curl_multi_add_handle(etcd->multi, etcd->watch);
	etcd_step(etcd);
}

static int event_take(const json_t *event, etcd_watch_function *each, void *closure,
		      char problem[PROBLEM_SIZE])
{
	const char *type = json_string_value(json_object_get(event, "type"));
	struct etcd_pair pair;
	int result = etcd_pair_read(json_object_get(event, "kv"), &pair);

	if (result < 0)
		return problem_set(-EPROTO, problem, "the server sent an invalid change");
	if (result == 1)
		return 0;
	each(closure, &pair, type && !strcmp(type, "DELETE"));
	free(pair.value);
	return 0;
}

static int message_take(const json_t *message, etcd_watch_function *each, void *closure,
			char problem[PROBLEM_SIZE])
{
	const json_t *result = json_object_get(message, "result"), *events, *event;
	const json_t *error = json_object_get(message, "error");
	size_t index;
	int outcome = 0;

	if (!json_is_object(result)) {
		const char *text = json_string_value(
			json_is_object(error) ? json_object_get(error, "message") : error);

		return problem_set(-EREMOTEIO, problem, "%.300s",
				   text ? text : "the server sent an invalid message");
	}
	if (json_is_true(json_object_get(result, "canceled"))) {
		const char *reason =
			json_string_value(json_object_get(result, "cancel_reason"));
		uint64_t compacted = etcd_number(result, "compact_revision");

		if (compacted)
			return problem_set(-ESTALE, problem,
					   "etcd has forgotten what was before revision %llu",
					   (unsigned long long)compacted);
		return problem_set(-EREMOTEIO, problem, "the server ended the stream: %.300s",
				   reason ? reason : "it gave no reason");
	}
	events = json_object_get(result, "events");
	json_array_foreach(events, index, event)
		if (outcome == 0)
			outcome = event_take(event, each, closure, problem);
	return outcome;
}

static int line_take(char *line, etcd_watch_function *each, void *closure,
		     char problem[PROBLEM_SIZE])
{
	json_error_t error;
	json_t *message = json_loads(line, 0, &error);
	int result;

	if (!json_is_object(message))
		result = problem_set(-EPROTO, problem, "the server sent a line that is no JSON document");
	else
		result = message_take(message, each, closure, problem);
	json_decref(message);
	return result;
}

static int stream_fail(struct etcd *etcd, char problem[PROBLEM_SIZE])
{
	const char *endpoint = etcd->settings->endpoint[etcd->watched];

	if (etcd->stream.is_full)
		return problem_set(-EFBIG, problem,
				   "%s: the server sent too much: expected at most %d bytes a message",
				   endpoint, ETCD_ANSWER_MOST);
	return problem_set(-ENOTCONN, problem, "%s: the stream of changes has ended: %s", endpoint,
			   etcd->watch_error[0] ? etcd->watch_error :
			   etcd->watch_result	? curl_easy_strerror(etcd->watch_result) :
						  "the server has closed it");
}

int etcd_watch_take(struct etcd *etcd, etcd_watch_function *each, void *closure,
		    char problem[PROBLEM_SIZE])
{
	struct etcd_text *stream = &etcd->stream;
	char *line = stream->text, *end;
	int result = 0;

	if (!etcd->watch)
		return problem_set(-ENOTCONN, problem, "there is no stream of changes");
	while (result == 0 && line && (end = strchr(line, '\n'))) {
		*end = '\0';
		result = line_take(line, each, closure, problem);
		line = end + 1;
	}
	if (line && line != stream->text) {
		stream->length -= (size_t)(line - stream->text);
		memmove(stream->text, line, stream->length + 1);
	}
	if (result == 0 && etcd->watch_ended)
		result = stream_fail(etcd, problem);
	if (result < 0)
		etcd_watch_end(etcd);
	return result;
}
