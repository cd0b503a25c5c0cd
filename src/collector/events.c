/* SPDX-License-Identifier: MIT */
/* The ring of events; see events.h. */
#include "collector/events.h"

#include <time.h>

static struct proto_event *place(struct events *events, uint64_t sequence)
{
	return &events->kept[sequence % EVENTS_KEPT];
}

const struct proto_event *events_add(struct events *events, const struct proto_event *event)
{
	struct proto_event *kept;
	struct timespec now;

	if (!events->next)
		events->next = 1;
	kept = place(events, events->next);
	clock_gettime(CLOCK_REALTIME, &now);
	*kept = *event;
	kept->sequence = events->next++;
	kept->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return kept;
}

const struct proto_event *events_from(const struct events *events, uint64_t sequence)
{
	uint64_t oldest = events->next > EVENTS_KEPT ? events->next - EVENTS_KEPT : 1;

	if (sequence < oldest)
		sequence = oldest;
	return sequence < events->next ? &events->kept[sequence % EVENTS_KEPT] : NULL;
}

const struct proto_event *events_numbered(const struct events *events, pid_t pid, uint64_t number)
{
	const struct proto_event *found = NULL, *event = events_from(events, 0);

	for (; event; event = events_from(events, event->sequence + 1))
		if (event->pid == pid && event->number == number)
			found = event;
	return found;
}
