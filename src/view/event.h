/* SPDX-License-Identifier: MIT */
/* An event of the collector, in the form in which it is shown. */
#ifndef VIEW_EVENT_H
#define VIEW_EVENT_H

#include "view/amount.h"
#include "output/form.h"
#include "output/table.h"
#include "proto/messages.h"

struct event {
	struct proto_event given;
	char user[NAME_SIZE]; /* who asked for a change; "" if that is not known */
	char id[32]; /* PID-NUMBER of a refusal or the like; "" for other events */
	/* Of what happened at a limit; NULL for others, and no amounts: */
	const char *kind;
	const char *scope;
	const char *ring;
	struct amount used, wanted, limit, configured;
};

extern const struct column event_columns[];

void event_read(struct event *event, const struct proto_event *given);

/* The same from a document of the history; false when it is none. */
bool event_read_document(struct event *event, const char *document);

/* The type (enum proto_event_type) of that name; EVENT_TYPES for one that is not known. */
uint32_t event_type_find(const char *name);

/* The names of all types, with commas between; returns ret_names. */
const char *event_type_names(char *ret_names, size_t size);

#endif
