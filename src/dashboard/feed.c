/* SPDX-License-Identifier: MIT */
/* Following events; see feed.h. */
#include "dashboard/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "output/memory.h"
#include "proto/client.h"

enum { SAME_COLLECTOR_SECONDS = 2 }; /* two looks at its uptime differ by the second they count */

struct feed {
	const char *socket;
	feed_listener *listener;
	void *closure;
	/* Of the thread: */
	uint64_t collector;
	int32_t collector_pid;
	/* Of everybody, under the lock: */
	pthread_mutex_t lock;
	struct feed_event kept[FEED_KEPT]; /* a ring */
	uint64_t added;
	struct feed_tally tally[FEED_TALLIES]; /* by hash */
	unsigned tallies;
};

struct feed *feed_make(const char *socket, feed_listener *listener, void *closure)
{
	struct feed *feed = memory_need(calloc(1, sizeof(*feed)));

	feed->socket = socket;
	feed->listener = listener;
	feed->closure = closure;
	pthread_mutex_init(&feed->lock, NULL);
	return feed;
}

void feed_remember(struct feed *feed, uint64_t collector, int32_t pid)
{
	feed->collector = collector;
	feed->collector_pid = pid;
}

int32_t feed_collector_pid(const struct feed *feed)
{
	return __atomic_load_n(&feed->collector_pid, __ATOMIC_RELAXED);
}

static unsigned tally_hash(const struct proto_event *event)
{
	uint32_t hash = 2166136261u + event->kind;

	for (const char *at = event->tenant; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	for (const char *at = event->device; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	return hash % FEED_TALLIES;
}

/* NULL when there are too many; the refusals of further tenants are not added up. */
static struct feed_tally *tally_find(struct feed *feed, const struct proto_event *event)
{
	for (unsigned place = tally_hash(event);; place = (place + 1) % FEED_TALLIES) {
		struct feed_tally *tally = &feed->tally[place];

		if (!tally->taken) {
			if (feed->tallies >= FEED_TALLIES / 2)
				return NULL;
			feed->tallies++;
			tally->taken = true;
			tally->kind = event->kind;
			strcpy(tally->tenant, event->tenant);
			strcpy(tally->device, event->device);
			return tally;
		}
		if (tally->kind == event->kind && !strcmp(tally->tenant, event->tenant) &&
		    !strcmp(tally->device, event->device))
			return tally;
	}
}

static void tally_add(struct feed *feed, const struct proto_event *event, uint64_t more)
{
	bool refused = event->type == EVENT_REFUSED;
	struct feed_tally *tally;

	if ((!refused && event->type != EVENT_TOLERATED) || event->kind >= KIND_COUNT)
		return;
	tally = tally_find(feed, event);
	if (tally)
		*(refused ? &tally->refused : &tally->tolerated) += more;
}

static struct feed_event *feed_find(struct feed *feed, uint64_t collector, uint64_t sequence)
{
	uint64_t oldest = feed->added > FEED_KEPT ? feed->added - FEED_KEPT : 0;

	for (uint64_t at = feed->added; at-- > oldest;) {
		struct feed_event *kept = &feed->kept[at % FEED_KEPT];

		if (kept->collector == collector && kept->event.sequence == sequence)
			return kept;
	}
	return NULL;
}

void feed_receive(struct feed *feed, uint64_t collector, const struct proto_event *received)
{
	struct proto_event event = *received;
	struct feed_event *kept, told;
	uint64_t before = 0;

	proto_text(event.tenant);
	proto_text(event.device);
	proto_text(event.text);
	pthread_mutex_lock(&feed->lock);
	kept = feed_find(feed, collector, event.sequence);
	if (kept) {
		before = kept->event.count;
	} else {
		kept = &feed->kept[feed->added++ % FEED_KEPT];
		*kept = (struct feed_event){ .collector = collector };
	}
	if (event.count > before) {
		tally_add(feed, &event, event.count - before);
		kept->event = event;
		kept->unsaved = true;
	}
	told = *kept;
	pthread_mutex_unlock(&feed->lock);
	if (event.count > before && feed->listener)
		feed->listener(&told, feed->closure);
}

static int feed_row_receive(const void *row, void *closure)
{
	struct feed *feed = closure;

	feed_receive(feed, feed->collector, row);
	return 0;
}

/* Whether the collector answers, and whether it is still the same. */
static bool feed_meet_collector(struct feed *feed)
{
	char problem[PROBLEM_SIZE];
	struct proto_status status;
	uint64_t started;

	if (proto_call(feed->socket, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, problem) < 0)
		return false;
	started = clock_ns(CLOCK_REALTIME) / CLOCK_SECOND_NS - status.uptime_seconds;
	if (status.pid != feed->collector_pid ||
	    started > feed->collector + SAME_COLLECTOR_SECONDS ||
	    started + SAME_COLLECTOR_SECONDS < feed->collector) {
		feed->collector = started;
		__atomic_store_n(&feed->collector_pid, status.pid, __ATOMIC_RELAXED);
	}
	return true;
}

static void *feed_follow(void *closure)
{
	const struct proto_choose follow = { .flags = CHOOSE_FOLLOW };
	const struct timespec pause = { .tv_sec = 1 };
	struct feed *feed = closure;
	char problem[PROBLEM_SIZE];

	for (;;) {
		if (feed_meet_collector(feed))
			proto_rows(feed->socket, MESSAGE_EVENTS, &follow, feed_row_receive, feed, 0,
				   problem);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int feed_start(struct feed *feed)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, feed_follow, feed);

	if (!error)
		pthread_detach(thread);
	return -error;
}

void feed_visit_tallies(struct feed *feed,
			void (*each)(const struct feed_tally *tally, void *closure), void *closure)
{
	pthread_mutex_lock(&feed->lock);
	for (unsigned i = 0; i < FEED_TALLIES; i++)
		if (feed->tally[i].taken)
			each(&feed->tally[i], closure);
	pthread_mutex_unlock(&feed->lock);
}

static void feed_visit_kept(struct feed *feed, bool unsaved, feed_listener *each, void *closure)
{
	pthread_mutex_lock(&feed->lock);
	for (uint64_t at = feed->added > FEED_KEPT ? feed->added - FEED_KEPT : 0; at < feed->added;
	     at++) {
		struct feed_event *kept = &feed->kept[at % FEED_KEPT];

		if (unsaved && !kept->unsaved)
			continue;
		each(kept, closure);
		if (unsaved)
			kept->unsaved = false;
	}
	pthread_mutex_unlock(&feed->lock);
}

void feed_visit(struct feed *feed, feed_listener *each, void *closure)
{
	feed_visit_kept(feed, false, each, closure);
}

void feed_visit_unsaved(struct feed *feed, feed_listener *each, void *closure)
{
	feed_visit_kept(feed, true, each, closure);
}
