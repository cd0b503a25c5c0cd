/* SPDX-License-Identifier: MIT */
/* Calls of etcd; see etcd.h. */
#include "fleet/etcd_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "output/memory.h"

enum { STATUS_UNAUTHENTICATED = 16 }; /* of gRPC */

struct etcd *etcd_open(const struct fleet_settings *settings, const struct log *log)
{
	struct etcd *etcd = memory_need(calloc(1, sizeof(*etcd)));

	curl_global_init(CURL_GLOBAL_DEFAULT);
	etcd->settings = settings;
	etcd->log = log;
	etcd->multi = memory_need(curl_multi_init());
	etcd->call = memory_need(curl_easy_init());
	/* Hosts do not all ask the same member. */
	for (const char *at = settings->host; *at; at++)
		etcd->endpoint = etcd->endpoint * 31 + (unsigned char)*at;
	etcd->endpoint %= settings->endpoints;
	return etcd;
}

void etcd_pause_set(struct etcd *etcd, void (*pause)(void *closure), void *closure)
{
	etcd->pause = pause;
	etcd->pause_closure = closure;
}

void etcd_pause(struct etcd *etcd)
{
	if (etcd->pause)
		etcd->pause(etcd->pause_closure);
}

void etcd_close(struct etcd *etcd)
{
	etcd_watch_end(etcd);
	curl_easy_cleanup(etcd->call);
	curl_multi_cleanup(etcd->multi);
	free(etcd);
}

size_t etcd_text_add(char *data, size_t size, size_t count, void *closure)
{
	struct etcd_text *text = closure;
	char *longer;

	if (text->length + count > ETCD_ANSWER_MOST) {
		text->is_full = true;
		return 0;
	}
	longer = realloc(text->text, text->length + count + 1);
	if (!longer)
		return 0;
	memcpy(longer + text->length, data, count);
	text->text = longer;
	text->length += count;
	text->text[text->length] = '\0';
	return count;
}

struct curl_slist *etcd_request_prepare(struct etcd *etcd, CURL *curl, unsigned endpoint,
					const char *path, const char *body)
{
	const struct fleet_settings *settings = etcd->settings;
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	char address[FLEET_ENDPOINT + 64];

	curl_easy_reset(curl);
	snprintf(address, sizeof(address), "%s%s", settings->endpoint[endpoint], path);
	if (etcd->token[0])
		headers = curl_slist_append(headers, etcd->token);
	curl_easy_setopt(curl, CURLOPT_URL, address);
	/* Large bodies are not to wait for a permission. */
	headers = memory_need(curl_slist_append(headers, "Expect:"));
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)ETCD_CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 2L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, etcd_text_add);
	if (settings->ca[0])
		curl_easy_setopt(curl, CURLOPT_CAINFO, settings->ca);
	if (settings->certificate[0])
		curl_easy_setopt(curl, CURLOPT_SSLCERT, settings->certificate);
	if (settings->key[0])
		curl_easy_setopt(curl, CURLOPT_SSLKEY, settings->key);
	return headers;
}

void etcd_step(struct etcd *etcd)
{
	int running;

	curl_multi_perform(etcd->multi, &running);
}

/* The stream's end is noticed here, whoever waits. True if the call is done. */
static bool etcd_done_take(struct etcd *etcd, CURLcode *ret_result)
{
	bool done = false;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(etcd->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		if (message->easy_handle == etcd->call) {
			*ret_result = message->data.result;
			done = true;
		} else if (message->easy_handle == etcd->watch) {
			etcd->watch_result = message->data.result;
			etcd->watch_ended = true;
		}
	}
	return done;
}

void etcd_wait(struct etcd *etcd, int milliseconds)
{
	CURLcode result;

	etcd_step(etcd);
	etcd_done_take(etcd, &result);
	if (!etcd->watch_ended)
		curl_multi_poll(etcd->multi, NULL, 0, milliseconds, NULL);
	etcd_step(etcd);
	etcd_done_take(etcd, &result);
}

/* One call at one endpoint. -ENOTCONN or -EFBIG with a sentence. */
static int endpoint_call(struct etcd *etcd, unsigned endpoint, const char *path, const char *body,
			 struct etcd_text *answer, long *ret_status, char problem[PROBLEM_SIZE])
{
	struct curl_slist *headers =
		etcd_request_prepare(etcd, etcd->call, endpoint, path, body);
	CURLcode result = CURLE_OK;

	curl_easy_setopt(etcd->call, CURLOPT_TIMEOUT_MS, (long)ETCD_CALL_MS);
	curl_easy_setopt(etcd->call, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(etcd->call, CURLOPT_ERRORBUFFER, etcd->error);
	etcd->error[0] = '\0';
	curl_multi_add_handle(etcd->multi, etcd->call);
	etcd_step(etcd);
	while (!etcd_done_take(etcd, &result)) {
		curl_multi_poll(etcd->multi, NULL, 0, ETCD_CALL_MS, NULL);
		etcd_step(etcd);
	}
	curl_multi_remove_handle(etcd->multi, etcd->call);
	curl_slist_free_all(headers);
	if (answer->is_full)
		return problem_set(-EFBIG, problem,
				   "%s: the server sent too much: expected at most %d bytes",
				   etcd->settings->endpoint[endpoint], ETCD_ANSWER_MOST);
	if (result != CURLE_OK)
		return problem_set(-ENOTCONN, problem, "%s: %s", etcd->settings->endpoint[endpoint],
				   etcd->error[0] ? etcd->error : curl_easy_strerror(result));
	curl_easy_getinfo(etcd->call, CURLINFO_RESPONSE_CODE, ret_status);
	return 0;
}

/* What etcd says of a call that it did not carry out. A member that has no leader, or that stops,
 * is as good as away. */
static int answer_fail(const char *endpoint, const json_t *answer, char problem[PROBLEM_SIZE])
{
	const char *text = json_string_value(json_object_get(answer, "error"));
	bool passes = text && (strstr(text, "no leader") || strstr(text, "leader changed") ||
			       strstr(text, "timed out") || strstr(text, "stopped") ||
			       strstr(text, "not capable") || strstr(text, "connection"));

	return problem_set(passes ? -ENOTCONN : -EREMOTEIO, problem, "%s: %.300s", endpoint,
			   text ? text : "the server refused the call");
}

static int answer_parse(struct etcd *etcd, unsigned endpoint, struct etcd_text *text, long status,
			json_t **ret_answer, char problem[PROBLEM_SIZE])
{
	const char *name = etcd->settings->endpoint[endpoint];
	json_error_t error;
	json_t *answer = text->text ? json_loads(text->text, 0, &error) : NULL;
	int result = 0;

	if (!json_is_object(answer))
		result = problem_set(-EPROTO, problem,
				     "%s: the answer is no JSON document of etcd (HTTP status %ld)",
				     name, status);
	else if (json_integer_value(json_object_get(answer, "code")) == STATUS_UNAUTHENTICATED &&
		 etcd->token[0])
		result = -EACCES;
	else if (status != 200)
		result = answer_fail(name, answer, problem);
	if (result < 0)
		json_decref(answer);
	else
		*ret_answer = answer;
	return result;
}

static int endpoint_ask(struct etcd *etcd, unsigned endpoint, const char *path, const char *body,
			json_t **ret_answer, char problem[PROBLEM_SIZE])
{
	struct etcd_text text = { .text = NULL };
	long status = 0;
	int result = endpoint_call(etcd, endpoint, path, body, &text, &status, problem);

	if (result == 0)
		result = answer_parse(etcd, endpoint, &text, status, ret_answer, problem);
	free(text.text);
	return result;
}

/* A token for the user. */
static int endpoint_authenticate(struct etcd *etcd, unsigned endpoint, char problem[PROBLEM_SIZE])
{
	json_t *body = memory_need(json_pack("{s:s,s:s}", "name", etcd->settings->user, "password",
					     etcd->settings->password));
	char *text = memory_need(json_dumps(body, JSON_COMPACT));
	json_t *answer;
	const char *token;
	int result;

	etcd->token[0] = '\0';
	result = endpoint_ask(etcd, endpoint, "/v3/auth/authenticate", text, &answer, problem);
	json_decref(body);
	free(text);
	if (result < 0)
		return result;
	token = json_string_value(json_object_get(answer, "token"));
	if (!token || strlen(token) >= FLEET_VALUE || strpbrk(token, "\r\n"))
		result = problem_set(-EPROTO, problem, "%s: the server sent an invalid token",
				     etcd->settings->endpoint[endpoint]);
	else
		snprintf(etcd->token, sizeof(etcd->token), "Authorization: %s", token);
	json_decref(answer);
	return result;
}

/* A token ends after some minutes: once more with a new one. */
static int endpoint_try(struct etcd *etcd, unsigned endpoint, const char *path, const char *body,
			json_t **ret_answer, char problem[PROBLEM_SIZE])
{
	bool has_user = etcd->settings->user[0];
	int result = 0;

	if (has_user && !etcd->token[0])
		result = endpoint_authenticate(etcd, endpoint, problem);
	if (result == 0)
		result = endpoint_ask(etcd, endpoint, path, body, ret_answer, problem);
	if (result != -EACCES)
		return result;
	problem_set(-EACCES, problem, "%s: the token is not valid any more",
		    etcd->settings->endpoint[endpoint]);
	result = endpoint_authenticate(etcd, endpoint, problem);
	if (result == 0)
		result = endpoint_ask(etcd, endpoint, path, body, ret_answer, problem);
	return result == -EACCES ? -EREMOTEIO : result;
}

int etcd_call(struct etcd *etcd, const char *path, json_t *body, json_t **ret_answer,
	      char problem[PROBLEM_SIZE])
{
	char *text = memory_need(json_dumps(body, JSON_COMPACT));
	unsigned first = etcd->endpoint;
	int result = -ENOTCONN;

	json_decref(body);
	for (unsigned i = 0; i < etcd->settings->endpoints; i++) {
		unsigned endpoint = (first + i) % etcd->settings->endpoints;

		result = endpoint_try(etcd, endpoint, path, text, ret_answer, problem);
		if (result == 0 || result == -EREMOTEIO) {
			etcd->endpoint = endpoint;
			break;
		}
		/* A stream from a server that does not answer may be silent for ever. */
		if (result != -EFBIG && etcd->watch && etcd->watched == endpoint)
			etcd->watch_ended = true;
	}
	free(text);
	return result;
}

uint64_t etcd_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);

	return text ? strtoull(text, NULL, 10) : (uint64_t)json_integer_value(value);
}
