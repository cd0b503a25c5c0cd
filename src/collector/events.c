/* SPDX-License-Identifier: MIT */
/* The events that are kept; see events.h. */
#include "collector/events.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { REPEATS_WITHIN = 16 }; /* events of the same tenant, since other processes are noisy, too */

static struct kept *kept_at(struct events *events, unsigned place)
{
	return &events->kept[place - 1];
}

/* The next of a process's numbers, or the same thing without one. Amounts may differ. */
static bool event_repeats(const struct proto_event *kept, const struct proto_event *event)
{
	return kept->type == event->type && kept->pid == event->pid && kept->kind == event->kind &&
	       kept->scope == event->scope && kept->own == event->own &&
	       kept->ring == event->ring && !strcmp(kept->device, event->device) &&
	       kept->has_author == event->has_author && kept->uid == event->uid &&
	       !strcmp(kept->text, event->text) &&
	       (event->number ? event->number == kept->number + 1 : !kept->number);
}

/* What the tenant did since anything happened to another: the order among tenants stays. */
static struct proto_event *events_repeated(struct events *events, const struct proto_event *event)
{
	unsigned place = events->newest;

	for (unsigned i = 0; i < REPEATS_WITHIN && place; i++) {
		struct kept *kept = kept_at(events, place);

		if (strcmp(kept->event.tenant, event->tenant))
			return NULL;
		if (event_repeats(&kept->event, event))
			return &kept->event;
		place = kept->previous;
	}
	return NULL;
}

/* The tenant's share; a free one if it has none. There are as many as events. */
static unsigned events_share_of(struct events *events, const char *tenant)
{
	unsigned unused = 0;

	for (unsigned i = EVENTS_KEPT; i-- > 0;) {
		if (!events->share[i].count)
			unused = i;
		else if (!strcmp(events->share[i].tenant, tenant))
			return i;
	}
	snprintf(events->share[unused].tenant, sizeof(events->share[unused].tenant), "%s", tenant);
	return unused;
}

static unsigned events_largest_share(const struct events *events)
{
	unsigned largest = 0;

	for (unsigned i = 1; i < EVENTS_KEPT; i++)
		if (events->share[i].count > events->share[largest].count)
			largest = i;
	return largest;
}

/* Takes the oldest of the largest share out, and returns its place. */
static unsigned events_place_free(struct events *events)
{
	unsigned share = events_largest_share(events), place = events->oldest;
	struct kept *kept;

	while (kept_at(events, place)->share != share)
		place = kept_at(events, place)->next;
	kept = kept_at(events, place);
	*(kept->previous ? &kept_at(events, kept->previous)->next : &events->oldest) = kept->next;
	*(kept->next ? &kept_at(events, kept->next)->previous : &events->newest) = kept->previous;
	events->share[share].count--;
	return place;
}

const struct proto_event *events_add(struct events *events, const struct proto_event *event)
{
	struct proto_event *same = events_repeated(events, event);
	uint64_t sequence = same ? same->sequence : ++events->last;
	uint64_t count = same ? same->count + 1 : 1;

	if (!same) {
		unsigned place = events->count < EVENTS_KEPT ? ++events->count :
							       events_place_free(events);
		struct kept *kept = kept_at(events, place);

		*kept = (struct kept){ .previous = events->newest,
				       .share = events_share_of(events, event->tenant) };
		events->share[kept->share].count++;
		*(events->newest ? &kept_at(events, events->newest)->next : &events->oldest) =
			place;
		events->newest = place;
		same = &kept->event;
	}
	*same = *event;
	same->sequence = sequence;
	same->count = count;
	same->time_ns = clock_ns(CLOCK_REALTIME);
	return same;
}

const struct proto_event *events_first(const struct events *events)
{
	return events->oldest ? &events->kept[events->oldest - 1].event : NULL;
}

const struct proto_event *events_next(const struct events *events, const struct proto_event *event)
{
	const struct kept *kept =
		(const void *)((const char *)event - offsetof(struct kept, event));

	return kept->next ? &events->kept[kept->next - 1].event : NULL;
}

const struct proto_event *events_numbered(const struct events *events, pid_t pid, uint64_t number)
{
	const struct proto_event *found = NULL, *event = events_first(events);

	for (; event; event = events_next(events, event))
		if (event->pid == pid && number <= event->number &&
		    number + event->count > event->number)
			found = event;
	return found;
}

bool events_is_chosen(const void *request_body, const void *body)
{
	struct proto_choose choose = *(const struct proto_choose *)request_body;
	const struct proto_event *event = body;

	return (!choose.pid || event->pid == choose.pid) &&
	       (!choose.tenant[0] || !strcmp(proto_text(choose.tenant), event->tenant));
}
