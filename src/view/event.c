/* SPDX-License-Identifier: MIT */
/* Events of the collector in the form in which they are shown; see event.h. */
#include "view/event.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "terms/refusal.h"
#include "view/vocabulary.h"
#include "output/page.h"

static const struct event_type {
	const char *name;
	const char *colour;
	bool at_limit; /* it has a kind, a scope and amounts */
} types[EVENT_TYPES] = {
	[EVENT_REFUSED] = { "refused", COLOUR_BAD, true },
	[EVENT_TOLERATED] = { "tolerated", COLOUR_WARNING, true },
	[EVENT_JOINED] = { "joined", NULL, false },
	[EVENT_LEFT] = { "left", NULL, false },
	[EVENT_DIED] = { "died", NULL, false },
	[EVENT_ORPHANED] = { "orphaned", COLOUR_WARNING, false },
	[EVENT_LIMITS] = { "limits", NULL, false },
	[EVENT_RELOADED] = { "reloaded", NULL, false },
	[EVENT_RELOAD_FAILED] = { "reload_failed", COLOUR_BAD, false },
	[EVENT_UNCOVERED] = { "uncovered", COLOUR_BAD, false },
	[EVENT_DRIFT] = { "drift", COLOUR_BAD, false },
	[EVENT_OVERRUN] = { "overrun", COLOUR_BAD, true },
	[EVENT_KILLED] = { "killed", COLOUR_BAD, false },
	[EVENT_RULE] = { "rule", NULL, false },
	[EVENT_RATE] = { "rate", COLOUR_WARNING, false },
	[EVENT_SHARE] = { "share", NULL, true },
	[EVENT_TENANT_CREATED] = { "tenant_created", NULL, false },
	[EVENT_TENANT_REMOVED] = { "tenant_removed", NULL, false },
};

static const struct event_type *type_of(uint32_t type)
{
	static const struct event_type unknown = { "unknown", NULL, false };

	return type < EVENT_TYPES && types[type].name ? &types[type] : &unknown;
}

uint32_t event_type_find(const char *name)
{
	uint32_t type = 0;

	while (type < EVENT_TYPES && (!types[type].name || strcmp(types[type].name, name)))
		type++;
	return type;
}

const char *event_type_names(char *ret_names, size_t size)
{
	size_t length = 0;

	*ret_names = '\0';
	for (uint32_t type = 0; type < EVENT_TYPES; type++)
		if (types[type].name && length < size)
			length += (size_t)snprintf(ret_names + length, size - length, "%s%s",
						   length ? ", " : "", types[type].name);
	return ret_names;
}

static void type_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct event_type *type = type_of(*(const uint32_t *)field);

	cell_print(ret_cell, type->colour, "%s", type->name);
}

static json_t *type_json(const struct form *form, const void *field)
{
	return form_json_text(type_of(*(const uint32_t *)field)->name);
}

static const struct form form_type = { .show = type_show, .json = type_json };

static const char *const rings[] = { [RING_LIBRARY] = "library", [RING_KERNEL] = "kernel" };
enum { RINGS = sizeof(rings) / sizeof(rings[0]) };

/* The whole event in words. */
static void sentence_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct event *event = field;
	char words[REFUSAL_TEXT], times[48] = "";
	char limit[AMOUNT_TEXT], configured[AMOUNT_TEXT];

	if (event->given.count > 1)
		snprintf(times, sizeof(times), _("%" PRIu64 " times, the last: "), event->given.count);
	if (!event->kind) {
		char author[96] = "";

		if (event->given.has_author)
			snprintf(author, sizeof(author), _(", by %s (uid %u)"),
				 *event->user ? event->user : "?", event->given.uid);
		cell_print(ret_cell, NULL, "%s%s%s%s%s", times, event->given.text, author,
			   *event->id ? _(", event ") : "", event->id);
		return;
	}
	if (event->given.forbidden) {
		cell_print(ret_cell, NULL,
			   _("%s%s%sdevice %s is not among the devices of the tenant, event %s"),
			   times, event->given.text, *event->given.text ? ": " : "",
			   *event->given.device ? event->given.device : "-", event->id);
		return;
	}
	if (event->given.type == EVENT_SHARE) {
		cell_print(ret_cell, NULL, _("%s%s limit in force %s, configured %s: %s"), times,
			   event->kind, amount_text(&event->limit, limit),
			   amount_text(&event->configured, configured), event->given.text);
		return;
	}
	refusal_text(&(struct refusal_words){ .kind = event->kind,
					      .scope = event->scope,
					      .used = event->given.used,
					      .limit = event->given.limit,
					      .wanted = event->given.wanted,
					      .own = event->given.own,
					      .configured = event->given.configured,
					      .share = scope_has_shares(event->given.scope),
					      .origin = event->given.origin },
		     words);
	cell_print(ret_cell, NULL, _("%s%s%s%s, event %s"), times, event->given.text,
		   *event->given.text ? ": " : "", words, event->id);
}

static const struct form form_sentence = { .show = sentence_show };

/* Of the event as a whole: 0 is a user. */
static json_t *author_json(const struct form *form, const void *field)
{
	const struct event *event = field;

	return event->given.has_author ? form_json_number(event->given.uid) : json_null();
}

static const struct form form_author = { .json = author_json };

/* Only changes have one; so this may ask the network. */
static void user_name(uid_t uid, char ret_name[NAME_SIZE])
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (!getpwuid_r(uid, &entry, room, sizeof(room), &found) && found)
		snprintf(ret_name, NAME_SIZE, "%s", found->pw_name);
}

const struct column event_columns[] = {
	COLUMN(struct event, given.sequence, "sequence", NULL, form_count),
	COLUMN(struct event, given.time_ns, "time", "time", form_time, .least = 19),
	COLUMN(struct event, given.count, "count", NULL, form_count),
	COLUMN(struct event, given.type, "type", "event", form_type, .least = 13),
	COLUMN(struct event, given.tenant, "tenant", "tenant", form_text, .least = 12),
	COLUMN(struct event, given.pid, "pid", "pid", form_pid, .least = 7),
	COLUMN(struct event, given.device, "device", "device", form_text, .least = 8),
	COLUMN(struct event, id, "id", NULL, form_text),
	COLUMN(struct event, kind, "kind", NULL, form_string),
	COLUMN(struct event, used, "used", NULL, form_amount),
	COLUMN(struct event, wanted, "wanted", NULL, form_amount),
	COLUMN(struct event, limit, "limit", NULL, form_amount),
	COLUMN(struct event, configured, "configured", NULL, form_amount),
	COLUMN(struct event, scope, "scope", NULL, form_string),
	COLUMN(struct event, given.own, "own", NULL, form_flag),
	COLUMN(struct event, given.forbidden, "forbidden", NULL, form_flag),
	COLUMN(struct event, given.origin, "from", NULL, form_text),
	COLUMN(struct event, ring, "ring", NULL, form_string),
	COLUMN(struct event, given.text, "text", NULL, form_text),
	{ .key = "uid", .form = &form_author },
	COLUMN(struct event, user, "user", NULL, form_text),
	{ .title = N_("what"), .form = &form_sentence, .least = 1, .flows = true },
	COLUMNS_END,
};

void event_read(struct event *event, const struct proto_event *given)
{
	const struct kind_row *kind;

	*event = (struct event){ .given = *given };
	proto_text(event->given.tenant);
	proto_text(event->given.device);
	proto_text(event->given.text);
	proto_text(event->given.origin);
	if (given->has_author)
		user_name(given->uid, event->user);
	if (given->number)
		snprintf(event->id, sizeof(event->id), "%" PRId32 "-%" PRIu64, given->pid,
			 given->number);
	if (!type_of(given->type)->at_limit || given->kind >= KIND_COUNT ||
	    !vocabulary_scope(given->scope, event->given.device))
		return;
	kind = &kind_rows[given->kind];
	event->kind = kind->name;
	event->scope = vocabulary_scope(given->scope, event->given.device);
	event->used = (struct amount){ given->used, kind };
	event->wanted = (struct amount){ given->wanted, kind };
	event->limit = (struct amount){ given->limit, kind };
	event->configured = (struct amount){ given->configured ? given->configured : given->limit,
					     kind };
	event->ring = given->ring < RINGS ? rings[given->ring] : NULL;
}
