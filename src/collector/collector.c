/* SPDX-License-Identifier: MIT */
/*
 * What holds the collector together: its events, the timers of orphans and searches, the list of
 * what is done regularly (tasks.def), and the loop that calls all of it.
 */
#include "collector/collector.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/notify.h"
#include "collector/accounts.h"
#include "collector/control.h"
#include "collector/grants.h"
#include "collector/policywatch.h"
#include "collector/tenant_tallies.h"

enum {
	SECOND_US = 1000000,
	ORPHAN_US = 1000000, /* how often orphans are looked for, */
	SOON_US = 20000,     /* and while the kernel may be clearing up after them */
	ACCURACY_US = 10000, /* and so much later at most */
	SLOW_US = 20000,     /* a task that takes so long keeps clients waiting */
	SEARCH_NS = 500000,  /* of searching, before others are served */
};

/* ---- events */

const struct proto_event *collector_event(struct collector *collector,
					  const struct proto_event *event)
{
	const struct proto_event *kept = events_add(&collector->events, event);

	if (collector->server)
		server_publish(collector->server, MESSAGE_EVENTS, kept, events_is_chosen);
	return kept;
}

void collector_member_event(struct collector *collector, unsigned member,
			    enum proto_event_type type)
{
	const struct book_member *row = &collector->books.file->member[member];
	struct proto_event event = { .type = type, .pid = row->pid };

	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 collector->books.file->tenant[row->tenant].name);
	collector_event(collector, &event);
}

void collector_member_ended(void *closure, unsigned member, enum member_end how)
{
	static const enum proto_event_type types[] = {
		[MEMBER_LEFT] = EVENT_LEFT,
		[MEMBER_DIED] = EVENT_DIED,
		[MEMBER_ORPHANED] = EVENT_ORPHANED,
	};

	collector_member_event(closure, member, types[how]);
	if (how != MEMBER_ORPHANED)
		tenant_tallies_keep(&((struct collector *)closure)->books, member);
	fairness_wake(closure);
}

/* ---- orphans and searches */

static void orphans_await(struct collector *collector, bool soon)
{
	sd_event_source_set_time_relative(collector->orphan_timer, soon ? SOON_US : ORPHAN_US);
	sd_event_source_set_enabled(collector->orphan_timer, SD_EVENT_ONESHOT);
}

/* In how many microseconds orphans are looked at anyway. */
static uint64_t orphans_due(const struct collector *collector)
{
	uint64_t now, due;
	int enabled;

	if (sd_event_source_get_enabled(collector->orphan_timer, &enabled) < 0 ||
	    enabled == SD_EVENT_OFF ||
	    sd_event_source_get_time(collector->orphan_timer, &due) < 0 ||
	    sd_event_now(collector->event, CLOCK_MONOTONIC, &now) < 0)
		return UINT64_MAX;
	return due > now ? due - now : 0;
}

/* As the turns of requests: the two alternate. If the last one that was sought is gone before a pass
 * has ended, there is no end of a pass that requests could wait for. */
void collector_search_await(struct collector *collector)
{
	if (!members_are_sought(&collector->members)) {
		server_resume(collector->server);
		return;
	}
	if (sd_event_source_get_enabled(collector->search_turn, NULL) > 0)
		return;
	sd_event_source_set_time_relative(collector->search_turn, 0);
	sd_event_source_set_enabled(collector->search_turn, SD_EVENT_ONESHOT);
}

static void collector_search_step(struct collector *collector)
{
	unsigned pages = collector->members.pages;

	if (members_search(&collector->members, clock_now_ns() + SEARCH_NS))
		server_resume(collector->server);
	/* What a member holds is known again, and with it what can be taken back. */
	if (collector->members.pages != pages) {
		grants_enforce(&collector->books);
		rates_apply(collector);
	}
	collector_search_await(collector);
}

void collector_dispatch(struct collector *collector)
{
	unsigned before = collector->members.orphaned;
	bool soon;

	members_dispatch(&collector->members);
	soon = collector->members.orphaned != before && kernel_is_watched(&collector->kernel);
	/* Who comes and goes must not put off the next look. */
	if (collector->members.orphans && orphans_due(collector) > (soon ? SOON_US : ORPHAN_US))
		orphans_await(collector, soon);
	collector_search_await(collector);
}

static void collector_orphans_look(struct collector *collector)
{
	bool soon = members_check_orphans(&collector->members);

	if (collector->members.orphans)
		orphans_await(collector, soon);
	collector_search_await(collector);
}

/* ---- what is done regularly */

void collector_measure_usage(struct collector *collector)
{
	if (collector->books.members_count)
		grants_measure(&collector->books);
}

static const struct {
	const char *name;
	unsigned seconds;
	void (*run)(struct collector *collector);
} tasks[] = {
#define TASK(name, seconds, function) { #name, seconds, function },
#include "collector/tasks.def"
#undef TASK
};

static int loop_on_second(sd_event_source *source, uint64_t now, void *closure)
{
	struct collector *collector = closure;

	for (unsigned i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		uint64_t begun_ns = clock_now_ns(), took_us;

		if (collector->ticks % tasks[i].seconds)
			continue;
		tasks[i].run(collector);
		took_us = (clock_now_ns() - begun_ns) / 1000;
		if (took_us >= SLOW_US)
			log_write(&collector->log, LOG_DEBUG, "the task '%s' took %llu us",
				  tasks[i].name, (unsigned long long)took_us);
	}
	collector->ticks++;
	sd_event_source_set_time_relative(source, SECOND_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the loop */

static int loop_on_members(sd_event_source *source, int fd, uint32_t events, void *closure)
{
	collector_dispatch(closure);
	return 0;
}

static int loop_on_orphans(sd_event_source *source, uint64_t now, void *closure)
{
	collector_orphans_look(closure);
	return 0;
}

static int loop_on_search(sd_event_source *source, uint64_t now, void *closure)
{
	collector_search_step(closure);
	return 0;
}

void collector_reload(struct collector *collector)
{
	if (!collector->reload_waits)
		accounts_forget(collector);
	collector->reload_waits = control_reload(collector, RELOAD_WHOLE, NULL) == CONTROL_WAITS;
	if (!collector->reload_waits)
		notify_send("READY=1");
}

void collector_names_known(struct collector *collector)
{
	if (collector->reload_waits)
		collector_reload(collector);
	fleet_layer_names_known(collector);
	if (collector->server)
		server_resume(collector->server);
}

static int loop_on_reload(sd_event_source *source, const struct signalfd_siginfo *info,
			  void *closure)
{
	notify_send("RELOADING=1");
	collector_reload(closure);
	return 0;
}

static int loop_on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *closure)
{
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

int collector_loop_prepare(struct collector *collector)
{
	sd_event *event = collector->event;
	int result = sd_event_add_io(event, NULL, collector->members.epoll, EPOLLIN,
				     loop_on_members, collector);

	if (result >= 0)
		result = sd_event_add_time_relative(event, &collector->orphan_timer,
						    CLOCK_MONOTONIC, ORPHAN_US, ACCURACY_US,
						    loop_on_orphans, collector);
	if (result >= 0)
		result = sd_event_add_time_relative(event, &collector->search_turn, CLOCK_MONOTONIC,
						    0, 1, loop_on_search, collector);
	if (result >= 0)
		result = sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, SECOND_US, 0,
						    loop_on_second, collector);
	if (result >= 0)
		result = sd_event_add_signal(event, NULL, SIGHUP, loop_on_reload, collector);
	if (result >= 0)
		result = sd_event_add_signal(event, NULL, SIGTERM, loop_on_stop, collector);
	if (result >= 0)
		result = sd_event_add_signal(event, NULL, SIGINT, loop_on_stop, collector);
	if (result >= 0)
		result = fairness_open(collector);
	if (result >= 0)
		result = policywatch_open(collector);
	if (result >= 0)
		result = fleet_layer_open(collector);
	if (result >= 0)
		result = pacing_open(collector);
	sd_event_set_watchdog(event, true);
	return result;
}

void collector_loop_close(struct collector *collector)
{
	policywatch_close(collector);
	fleet_layer_close(collector);
	rates_close(collector);
	fairness_close(collector);
	pacing_close(collector);
	sd_event_source_disable_unref(collector->orphan_timer);
	sd_event_source_disable_unref(collector->search_turn);
	sd_event_unref(collector->event);
}
