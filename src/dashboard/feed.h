/* SPDX-License-Identifier: MIT */
/*
 * The collector's events: a thread follows them, keeps the latest, adds up refusals, and hands
 * each on to the history and to live pages. An event that repeats comes again with a higher
 * count, and after a new connection all of them come again; so the feed knows each by the
 * collector's start and its sequence.
 */
#ifndef DASHBOARD_FEED_H
#define DASHBOARD_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"

enum { FEED_KEPT = 2048, FEED_TALLIES = 8192 };

/* What happened at limits of one kind, of a tenant on a device. */
struct feed_tally {
	char tenant[NAME_SIZE];
	char device[NAME_SIZE];
	uint32_t kind;
	bool taken; /* by these names */
	uint64_t refused;
	uint64_t tolerated;
};

struct feed_event {
	uint64_t collector; /* when it started: seconds since 1970, as first seen */
	struct proto_event event;
	bool unsaved; /* changed since feed_visit_unsaved */
};

struct feed;

/* Called for each event that is new or has a new count; in the feed's thread. */
typedef void feed_listener(const struct feed_event *event, void *closure);

struct feed *feed_make(const char *socket, feed_listener *listener, void *closure);
/* Follows the collector until the program ends. 0 or -errno. */
int feed_start(struct feed *feed);

/* Which collector the feed met last, so that a program that starts again knows its events. */
void feed_remember(struct feed *feed, uint64_t collector, int32_t pid);
int32_t feed_collector_pid(const struct feed *feed);

/* One event as the collector sends it; what the thread does with each. */
void feed_receive(struct feed *feed, uint64_t collector, const struct proto_event *event);

void feed_visit_tallies(struct feed *feed,
			void (*each)(const struct feed_tally *tally, void *closure), void *closure);
/* The latest events, the oldest first; and those of them that were not visited so before. The
 * function must not call the feed. */
void feed_visit(struct feed *feed, feed_listener *each, void *closure);
void feed_visit_unsaved(struct feed *feed, feed_listener *each, void *closure);

#endif
