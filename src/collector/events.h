/* SPDX-License-Identifier: MIT */
/*
 * The latest events, numbered, for later requests and for subscribers. Repeats are one event
 * with a count, and the tenant with most events loses its own oldest ones: a tenant cannot push
 * out those of others.
 */
#ifndef COLLECTOR_EVENTS_H
#define COLLECTOR_EVENTS_H

#include <sys/types.h>

#include "proto/messages.h"

enum { EVENTS_KEPT = 1024 };

/* A zeroed one is empty. */
struct events {
	uint64_t last; /* sequence; the first is 1 */
	unsigned count;
	/* In order of their sequence: places, plus one, so that 0 is none. */
	unsigned oldest, newest;
	struct kept {
		struct proto_event event;
		unsigned next, previous;
		unsigned share; /* of its tenant */
	} kept[EVENTS_KEPT];
	struct share {
		char tenant[NAME_SIZE];
		unsigned count;
	} share[EVENTS_KEPT];
};

/* Numbers it, notes the time, and keeps it; or counts a repeat of what just happened. */
const struct proto_event *events_add(struct events *events, const struct proto_event *event);

/* The oldest that is kept, and the one after another; NULL. */
const struct proto_event *events_first(const struct events *events);
const struct proto_event *events_next(const struct events *events, const struct proto_event *event);

/* The newest of those of a process with that number (not 0), or NULL. */
const struct proto_event *events_numbered(const struct events *events, pid_t pid, uint64_t number);

/* Whether an event is among those that a request, a struct proto_choose, chose. For
 * server_publish. */
bool events_is_chosen(const void *request_body, const void *event);

#endif
