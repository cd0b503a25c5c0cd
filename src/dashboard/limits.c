/* SPDX-License-Identifier: MIT */
/*
 * POST /api/limits: a change of the policy in force, passed to the collector as the command does
 * it. {"section": "tenant a", "set": {"qp": 10}, "unset": ["mr"]}. The collector decides whether
 * this program may change anything, and judges keys and values.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/token.h"
#include "output/form.h"
#include "output/memory.h"
#include "proto/client.h"

/* Whether the text has no control characters: it becomes a part of a line. */
static bool is_plain(const char *text)
{
	while (*text && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

/* Appends "KEY = VALUE"; false when it is no line, or there is no room for it. */
static bool line_append(struct proto_change *change, const char *key, const char *value)
{
	size_t used = strlen(change->text), room = sizeof(change->text) - used;

	if (!*key || strchr(key, '=') || !is_plain(key) || !*value || !is_plain(value))
		return false;
	return (size_t)snprintf(change->text + used, room, "%s = %s\n", key, value) < room;
}

static bool value_append(struct proto_change *change, const char *key, const json_t *value)
{
	char number[32];

	if (json_is_string(value))
		return line_append(change, key, json_string_value(value));
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return line_append(change, key, number);
}

/* The document as a change; false after the answer says what is wrong with it. */
static bool change_read(const json_t *document, struct proto_change *ret_change,
			struct answer *answer)
{
	json_t *set = json_object_get(document, "set"), *unset = json_object_get(document, "unset");
	const char *section = json_string_value(json_object_get(document, "section"));
	json_t *value;
	const char *key;
	size_t index;

	*ret_change = (struct proto_change){ .text = "" };
	if (!section || !is_plain(section) || strlen(section) >= sizeof(ret_change->section)) {
		answer_fail(answer, 400,
			    "section: missing or invalid: expected host, default or tenant NAME");
		return false;
	}
	strcpy(ret_change->section, section);
	if ((set && !json_is_object(set)) || (unset && !json_is_array(unset)) ||
	    json_object_size(set) + json_array_size(unset) == 0) {
		answer_fail(answer, 400,
			    "set, unset: expected an object of keys and values, an array of keys, "
			    "or both");
		return false;
	}
	json_object_foreach(set, key, value)
		if (!value_append(ret_change, key, value)) {
			answer_fail(answer, 400,
				    "set: %.100s: invalid: expected a key of the policy with a "
				    "number or a text, and not more than %d bytes together",
				    key, PROTO_TEXT);
			return false;
		}
	json_array_foreach(unset, index, value)
		if (!json_is_string(value) ||
		    !line_append(ret_change, json_string_value(value), "unset")) {
			answer_fail(answer, 400,
				    "unset: element %zu: invalid: expected a key of the policy",
				    index);
			return false;
		}
	return true;
}

static void change_pass_on(struct dashboard *dashboard, const struct proto_change *change,
			   struct answer *answer)
{
	static const struct {
		int error;
		unsigned status;
	} outcomes[] = {
		{ -EINVAL, 400 }, { -ERANGE, 400 }, { -EPERM, 403 },
		{ -EACCES, 403 }, { -ENOENT, 404 }, { -EEXIST, 409 },
	};
	char problem[PROBLEM_SIZE];
	int result = proto_call(dashboard->socket, MESSAGE_CHANGE_POLICY, change, NULL, NULL, 0, 0,
				problem);
	struct sample *sample = dashboard_sample(dashboard);
	struct text text = { .data = NULL };
	bool up = sample->up; /* -ENOENT of a collector, or of its socket */
	unsigned status = 503;
	json_t *section;
	char *written;

	sample_release(sample);
	if (result < 0) {
		for (unsigned i = 0; up && i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
			if (outcomes[i].error == result)
				status = outcomes[i].status;
		answer_fail(answer, status, "%s", problem);
		return;
	}
	log_write(&dashboard->log, LOG_INFO, "changed: [%s] %s", change->section, change->via);
	section = json_string(change->section);
	written = section ? json_dumps(section, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
	text_print(&text, "{\"section\": %s}\n", written ? written : "null");
	free(written);
	json_decref(section);
	answer_json(answer, 200, &text);
}

/* Whether the request has the token; otherwise the sentence says what is expected. */
static bool request_is_authorized(const struct dashboard *dashboard, const struct request *request,
				  char ret_problem[PROBLEM_SIZE])
{
	char token[TOKEN_TEXT], problem[PROBLEM_SIZE];

	if (token_read(dashboard->token_path, token, problem) < 0)
		snprintf(ret_problem, PROBLEM_SIZE, "no change is possible: %.*s",
			 PROBLEM_SIZE - 32, problem);
	else if (token_matches(token, request->authorization))
		return true;
	else
		snprintf(ret_problem, PROBLEM_SIZE,
			 "Authorization: expected 'Bearer TOKEN'; 'rdma_dashboard --token' prints "
			 "the token");
	return false;
}

/* Whether a token is the right one, for a page in which a person just typed it. */
void answer_token(struct dashboard *dashboard, const struct request *request, struct answer *answer)
{
	char problem[PROBLEM_SIZE] = "";
	bool valid = request_is_authorized(dashboard, request, problem);
	json_t *document = memory_need(json_object());
	struct text text = { .data = NULL };
	char *written;

	json_object_set_new(document, "valid", json_boolean(valid));
	json_object_set_new(document, "problem", valid ? json_null() : form_json_text(problem));
	written = memory_need(json_dumps(document, JSON_ENSURE_ASCII));
	text_print(&text, "%s\n", written);
	free(written);
	json_decref(document);
	answer_json(answer, 200, &text);
}

void answer_limits(struct dashboard *dashboard, const struct request *request,
		   struct answer *answer)
{
	static const char type[] = "application/json";
	char problem[PROBLEM_SIZE];
	struct proto_change change;
	json_error_t error;
	json_t *document;

	if (!request_is_authorized(dashboard, request, problem)) {
		answer_fail(answer, 401, "%s", problem);
		return;
	}
	if (!request->content_type ||
	    strncasecmp(request->content_type, type, sizeof(type) - 1)) {
		answer_fail(answer, 415, "Content-Type: expected %s", type);
		return;
	}
	document = json_loadb(request->body ? request->body : "", request->length,
			      JSON_REJECT_DUPLICATES, &error);
	if (!document)
		answer_fail(answer, 400, "line %d, column %d: %s", error.line, error.column,
			    error.text);
	else if (change_read(document, &change, answer)) {
		/* The collector sees this program only; its event says for whom it asks. */
		snprintf(change.via, sizeof(change.via), "dashboard's token, from %.39s",
			 request->who ? request->who : "unknown");
		change_pass_on(dashboard, &change, answer);
	}
	json_decref(document);
}
