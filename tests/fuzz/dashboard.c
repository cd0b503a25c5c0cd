/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a request to the dashboard: method, path, headers, query and body, one in each line
 * and the body behind an empty one. Each request gets an answer of a known status with a type, and
 * every answer in JSON is JSON. The token is right in every second request, so that bodies are read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dashboard/dashboard.h"
#include "dashboard/feed.h"
#include "dashboard/live.h"
#include "dashboard/recent.h"
#include "dashboard/request.h"
#include "dashboard/token.h"
#include "output/json.h"

static struct dashboard dashboard;
static char bearer[TOKEN_TEXT + 8];

static void require(int condition)
{
	if (!condition)
		abort();
}

/* A state with a tenant of any name, and no collector: changes fail there, and nothing else. */
static void state_begin(void)
{
	static const char name[] = "a\"\\\n\xff<b>";
	char problem[PROBLEM_SIZE], token[TOKEN_TEXT];
	struct proto_row row = { .scope = ROW_TENANT };
	struct sample *sample;

	snprintf(dashboard.socket, sizeof(dashboard.socket), "/nonexistent/socket");
	snprintf(dashboard.token_path, sizeof(dashboard.token_path), "/dev/shm/rdma_fuzz_token.%d",
		 (int)getpid());
	require(token_make(dashboard.token_path, problem) == 0);
	require(token_read(dashboard.token_path, token, problem) == 0);
	snprintf(bearer, sizeof(bearer), "Bearer %s", token);
	dashboard.names[dashboard.names_count++] = "localhost";
	dashboard.live = live_make();
	dashboard.recent = recent_make();
	dashboard.feed = feed_make(dashboard.socket, NULL, NULL);
	dashboard_prepare(&dashboard);
	sample = sample_make(dashboard.socket);
	sample->up = true;
	strcpy(row.tenant, name);
	row.used[0] = row.peak[0] = 1;
	sample_row_take(&row, &sample->rows);
	recent_add(dashboard.recent, sample);
	dashboard_publish(&dashboard, sample);
}

/* The next line, without its end; NULL when the lines are over. */
static char *line_next(char **at)
{
	char *line = *at, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	*at = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return *line ? line : NULL;
}

static void answer_look(const struct answer *answer)
{
	static const unsigned statuses[] = { 200, 304, 400, 401, 403, 404, 405, 406,
					     409, 413, 415, 503 };
	json_t *document;
	bool known = false;

	for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		known = known || answer->status == statuses[i];
	require(known && answer->type && (answer->body || answer->file || answer->live));
	if (!answer->body || strcmp(answer->type, "application/json"))
		return;
	document = json_loadb(answer->body->text.data, answer->body->text.length, 0, NULL);
	require(document != NULL);
	json_decref(document);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1), *at = text;
	struct request request = { .method = "GET", .path = "/" };
	const char **const fields[] = { &request.method, &request.path, &request.host,
					&request.origin, &request.site, &request.content_type,
					&request.accept, &request.tenant, &request.resource,
					&request.since, &request.step, &request.authorization,
					&request.accept_encoding, &request.if_none_match,
					&request.section };
	struct answer answer;

	require(text != NULL);
	if (!dashboard.names_count)
		state_begin();
	memcpy(text, data, size);
	text[size] = '\0';
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const char *line = line_next(&at);

		if (!line)
			break;
		*fields[i] = line;
	}
	if (at && at <= text + size) {
		request.body = at;
		request.length = (size_t)(text + size - at);
		if (request.length > REQUEST_BODY_MOST)
			request.length = REQUEST_BODY_MOST;
	}
	if (size % 2)
		request.authorization = bearer;
	request_answer(&dashboard, &request, &answer);
	answer_look(&answer);
	body_release(answer.body);
	free(text);
	return 0;
}
