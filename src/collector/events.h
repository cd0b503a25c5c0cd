/* SPDX-License-Identifier: MIT */
/* The last things that happened, numbered: for who asks later, and for subscribers. */
#ifndef COLLECTOR_EVENTS_H
#define COLLECTOR_EVENTS_H

#include <sys/types.h>

#include "proto/messages.h"

enum { EVENTS_KEPT = 1024 };

struct events {
	uint64_t next; /* sequence of the next one; the first is 1 */
	struct proto_event kept[EVENTS_KEPT];
};

/* Numbers it, notes the time, and keeps it in place of the oldest. */
const struct proto_event *events_add(struct events *events, const struct proto_event *event);

/* The first kept one from that sequence on, or NULL. */
const struct proto_event *events_from(const struct events *events, uint64_t sequence);

/* The newest of those of a process with that number (not 0), or NULL. */
const struct proto_event *events_numbered(const struct events *events, pid_t pid, uint64_t number);

#endif
