/* SPDX-License-Identifier: MIT */
/* Events from the documents in which the history keeps them: the other way than event_columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "terms/kinds.h"
#include "view/event.h"
#include "view/vocabulary.h"

static uint64_t member_number(const json_t *document, const char *name, uint64_t otherwise)
{
	const json_t *value = json_object_get(document, name);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

static const char *member_text(const json_t *document, const char *name)
{
	const char *text = json_string_value(json_object_get(document, name));

	return text ? text : "";
}

/* "2026-11-15T08:05:04.196092158Z"; 0 for anything else. */
static uint64_t member_time(const json_t *document, const char *name)
{
	struct tm moment = { 0 };
	const char *end = strptime(member_text(document, name), "%Y-%m-%dT%H:%M:%S", &moment);

	if (!end || *end != '.')
		return 0;
	return (uint64_t)timegm(&moment) * CLOCK_SECOND_NS + strtoul(end + 1, NULL, 10);
}

bool event_read_document(struct event *event, const char *text)
{
	struct proto_event given = { .type = EVENT_TYPES, .scope = SCOPES, .kind = KIND_COUNT };
	json_t *document = json_loads(text, 0, NULL);
	const char *kind, *scope, *number;
	int found;

	if (!json_is_object(document)) {
		json_decref(document);
		return false;
	}
	kind = member_text(document, "kind");
	scope = member_text(document, "scope");
	number = strchr(member_text(document, "id"), '-');
	given.sequence = member_number(document, "sequence", 0);
	given.time_ns = member_time(document, "time");
	given.count = member_number(document, "count", 1);
	given.type = event_type_find(member_text(document, "type"));
	given.pid = (int32_t)member_number(document, "pid", 0);
	given.number = number ? strtoull(number + 1, NULL, 10) : 0;
	snprintf(given.tenant, sizeof(given.tenant), "%s", member_text(document, "tenant"));
	snprintf(given.device, sizeof(given.device), "%s", member_text(document, "device"));
	snprintf(given.text, sizeof(given.text), "%s", member_text(document, "text"));
	given.has_author = json_is_integer(json_object_get(document, "uid"));
	given.uid = (uint32_t)member_number(document, "uid", 0);
	snprintf(given.origin, sizeof(given.origin), "%s", member_text(document, "from"));
	found = kind_find(kind, strlen(kind));
	if (found >= 0)
		given.kind = (uint32_t)found;
	for (uint32_t i = 0; i < SCOPES; i++)
		if (!strcmp(vocabulary_scope(i, given.device), scope))
			given.scope = i;
	given.own = json_is_true(json_object_get(document, "own"));
	given.forbidden = json_is_true(json_object_get(document, "forbidden"));
	given.ring = !strcmp(member_text(document, "ring"), "kernel") ? RING_KERNEL : RING_LIBRARY;
	given.used = member_number(document, "used", 0);
	given.wanted = member_number(document, "wanted", 0);
	given.limit = member_number(document, "limit", UNLIMITED);
	given.configured = member_number(document, "configured", 0);
	if (given.configured == given.limit)
		given.configured = 0;
	json_decref(document);
	event_read(event, &given);
	return true;
}
