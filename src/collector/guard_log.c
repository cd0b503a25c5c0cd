/* SPDX-License-Identifier: MIT */
/* The kernel's log of the guard: what it refused becomes an event. */
#include "collector/guard_parts.h"
#include "collector/origins.h"

#include <inttypes.h>
#include <stdio.h>

/* Registered processes number what happens to them; of others, what is remembered counts. */
static uint64_t guard_event_number(struct collector *collector, pid_t pid)
{
	const struct proto_event *event = events_first(&collector->events);
	int member = members_of_pid(&collector->members, pid);
	uint64_t highest = 0;

	if (member >= 0)
		return ++collector->books.file->member[member].refusals;
	for (; event; event = events_next(&collector->events, event))
		if (event->pid == pid && event->number > highest)
			highest = event->number;
	return highest + 1;
}

static void guard_entry_report(struct collector *collector, const struct guard_entry *entry)
{
	static const struct {
		enum proto_event_type type;
		const char *text;
	} rows[] = {
		[GUARD_REFUSED] = { EVENT_REFUSED, "refused in the kernel" },
		[GUARD_HOST_REFUSED] = { EVENT_REFUSED, "refused in the kernel" },
		[GUARD_OVERRUN] = { EVENT_OVERRUN,
				    "made beyond the limit, in a way that could not be refused" },
		[GUARD_KILLED] = { EVENT_KILLED,
				   "killed: it changed a command after the guard had looked at it" },
		[GUARD_CLOSED_REFUSED] = { EVENT_REFUSED,
					   "refused in the kernel: the device file is closed, since "
					   "a process changed a command on it" },
		[GUARD_CLOSED_KILLED] = { EVENT_KILLED,
					  "killed: it used a device file on which its tenant had "
					  "changed a command" },
		[GUARD_CROWDED] = { EVENT_REFUSED,
				    "refused in the kernel: the tenant has used its share of "
				    "the guard's table" },
	};
	const struct guards_tenant *tenant = guards_tenant_of_slot(&collector->guards, entry->slot);
	struct proto_event event = {
		.pid = (int32_t)entry->pid,
		.kind = entry->kind,
		.scope = SCOPE_TENANT,
		.ring = RING_KERNEL,
		.used = entry->used,
		.wanted = entry->amount,
		.limit = entry->limit,
	};
	const struct scope *scope;
	enum mode mode;

	if (entry->event >= sizeof(rows) / sizeof(rows[0]) || entry->kind >= KIND_COUNT)
		return;
	event.type = rows[entry->event].type;
	event.number = guard_event_number(collector, event.pid);
	scope = tenant && entry->slot ? limits_of_tenant(collector, tenant->name, &mode) : NULL;
	if (entry->event == GUARD_REFUSED && scope &&
	    scope->reason[entry->kind] != FAIR_CONFIGURED &&
	    scope->configured[entry->kind] > entry->limit)
		event.configured = scope->configured[entry->kind];
	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 tenant && entry->slot ? tenant->name : "");
	snprintf(event.text, sizeof(event.text), "%s: %s", entry->command, rows[entry->event].text);
	if (entry->event == GUARD_HOST_REFUSED) {
		/* Of the guard's part of the limit so much was left. */
		uint64_t left = entry->limit > entry->used ? entry->limit - entry->used : 0;

		event.scope = SCOPE_HOST;
		event.limit = collector->books.host.total.limit[entry->kind];
		event.used = event.limit > left ? event.limit - left : 0;
	}
	if (entry->device) {
		event.forbidden = 1;
		event.scope = SCOPE_TENANT_DEVICE;
		snprintf(event.device, sizeof(event.device), "%s",
			 guards_device_name(entry->device - 1));
	}
	if (event.type == EVENT_REFUSED || event.type == EVENT_OVERRUN)
		origin_of_refusal(collector, &event, entry->kind, event.device, event.origin);
	collector_event(collector, &event);
}

void guards_listen(struct collector *collector)
{
	static struct log_seldom too_fast;
	struct guards *guards = &collector->guards;
	struct guard_entry entry;
	__u64 lost = 0;

	if (!guards->guard.head || !monitor_guard_is_current(&guards->guard, guards->directory))
		return;
	while (monitor_guard_log(&guards->guard, &guards->seen, &lost, &entry))
		guard_entry_report(collector, &entry);
	if (lost)
		log_seldom(&collector->log, &too_fast, LOG_WARN,
			   "%" PRIu64 " refusals of the guard are missing in the events: they came too fast",
			   (uint64_t)lost);
}
