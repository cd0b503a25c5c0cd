/* SPDX-License-Identifier: MIT */
/*
 * The fleet's layer of the policy; see fleet_layer.h. Both variants of it, with and without the
 * leased limits, are in memory: the end of a lease needs no file.
 */
#include "collector/fleet_layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "collector/accounts.h"
#include "collector/collector.h"
#include "collector/control.h"

enum {
	FLEET_SOON_US = 5000, /* several files are replaced one after the other */
	FLEET_CHANGES = IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR,
	FLEET_PRIORITY = -100, /* the end of a lease goes before requests of clients */
};

const struct policy *fleet_layer_in_force(const struct collector *collector)
{
	const struct policy_fleet *policy = &collector->fleet.policy;

	return policy->leased ? policy->leased : policy->kept;
}

/* ---- the lease */

static void lease_end_await(struct fleet_layer *fleet)
{
	if (!fleet->end_timer)
		return;
	if (fleet->policy.leased)
		sd_event_source_set_time(fleet->end_timer, fleet->policy.until_ns / 1000);
	sd_event_source_set_enabled(fleet->end_timer,
				    fleet->policy.leased ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void fleet_layer_apply(struct collector *collector)
{
	char problem[PROBLEM_SIZE];

	control_renew(collector, false, problem);
}

/* True if it was in force until now. */
static bool lease_drop(struct fleet_layer *fleet)
{
	bool was = fleet->policy.leased != NULL;

	policy_free(fleet->policy.leased);
	fleet->policy.leased = NULL;
	fleet->policy.until_ns = 0;
	return was;
}

static int fleet_layer_on_end(sd_event_source *source, uint64_t now, void *closure)
{
	struct collector *collector = closure;

	if (!lease_drop(&collector->fleet))
		return 0;
	log_write(&collector->log, LOG_WARN,
		  "%s: the lease has ended: shares of fleet quotas are what the host keeps without it",
		  collector->fleet.directory);
	fleet_layer_apply(collector);
	return 0;
}

/* ---- reading */

static void fleet_layer_adopt(struct collector *collector, struct policy_fleet *policy)
{
	struct fleet_layer *fleet = &collector->fleet;
	/* Most readings only find a later end of the lease. */
	bool same = fleet->policy.kept && !policy->leased == !fleet->policy.leased &&
		    policy->sum == fleet->policy.sum;

	policy_fleet_free(&fleet->policy);
	fleet->policy = *policy;
	lease_end_await(fleet);
	if (same)
		return;
	log_write(&collector->log, LOG_INFO, "%s: the fleet's policy is in force%s",
		  fleet->directory, policy->leased ? ", with shares of its quotas" : "");
	if (collector->effective)
		fleet_layer_apply(collector);
}

/* rdma_fleet removes none of these: whoever did lifts no limit. */
static int fleet_files_check(const struct fleet_layer *fleet, const struct policy_fleet *policy,
			     char problem[PROBLEM_SIZE])
{
	const char *missing = fleet->policy.has_policy && !policy->has_policy ? FLEET_POLICY :
			      fleet->policy.has_kept && !policy->has_kept     ? FLEET_KEPT :
										NULL;

	return missing ? problem_set(-ENOENT, problem, "%.300s/%s: is missing", fleet->directory,
				     missing) :
			 0;
}

static int fleet_layer_read(struct collector *collector)
{
	struct fleet_layer *fleet = &collector->fleet;
	struct policy_fleet policy;
	char problem[PROBLEM_SIZE] = "";
	int result = policy_fleet_read(fleet->directory, clock_boot_ns(), &policy, problem);

	if (result == 0 && accounts_are_awaited(collector)) {
		policy_fleet_free(&policy);
		return CONTROL_WAITS;
	}
	if (result == 0) {
		result = fleet_files_check(fleet, &policy, problem);
		if (result < 0)
			policy_fleet_free(&policy);
	}
	if (result == 0) {
		if (fleet->problem[0] && !strcmp(collector->problem, fleet->problem))
			collector->problem[0] = '\0';
		fleet->problem[0] = '\0';
		fleet_layer_adopt(collector, &policy);
		return 0;
	}
	if (!problem[0])
		problem_set(result, problem, "%.300s: %s", fleet->directory, strerror(-result));
	if (strcmp(problem, fleet->problem))
		log_write(&collector->log, LOG_ERROR, "%s; %s", problem,
			  fleet->policy.kept ? "the fleet's old policy stays" :
					       "the fleet has no limits here");
	memcpy(fleet->problem, problem, sizeof(problem));
	memcpy(collector->problem, problem, sizeof(problem));
	return result;
}

void fleet_layer_start(struct collector *collector)
{
	struct fleet_layer *fleet = &collector->fleet;

	snprintf(fleet->directory, sizeof(fleet->directory), "%s",
		 collector->files ? collector->files->fleet : "");
	if (fleet->directory[0])
		while (fleet_layer_read(collector) == CONTROL_WAITS)
			;
}

static void fleet_layer_reload(struct collector *collector)
{
	collector->fleet.waits = fleet_layer_read(collector) == CONTROL_WAITS;
}

void fleet_layer_names_known(struct collector *collector)
{
	if (collector->fleet.waits)
		fleet_layer_reload(collector);
}

/* ---- following */

static int fleet_layer_on_time(sd_event_source *source, uint64_t now, void *closure)
{
	fleet_layer_reload(closure);
	return 0;
}

static void fleet_layer_read_soon(struct fleet_layer *fleet)
{
	sd_event_source_set_time_relative(fleet->read_timer, FLEET_SOON_US);
	sd_event_source_set_enabled(fleet->read_timer, SD_EVENT_ONESHOT);
}

static int fleet_layer_on_change(sd_event_source *source, const struct inotify_event *event,
				 void *closure)
{
	static const char *const names[] = { FLEET_POLICY, FLEET_KEPT, FLEET_LEASED, FLEET_LEASE };
	struct collector *collector = closure;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!event->len || !strcmp(event->name, names[i])) {
			fleet_layer_read_soon(&collector->fleet);
			break;
		}
	return 0;
}

/* The directory may come later, or be another one: service managers make it. */
void fleet_layer_check(struct collector *collector)
{
	struct fleet_layer *fleet = &collector->fleet;
	struct stat status;

	if (!fleet->directory[0] || stat(fleet->directory, &status) ||
	    (fleet->watch && status.st_dev == fleet->watched.device &&
	     status.st_ino == fleet->watched.inode))
		return;
	fleet->watch = sd_event_source_disable_unref(fleet->watch);
	if (sd_event_add_inotify(collector->event, &fleet->watch, fleet->directory, FLEET_CHANGES,
				 fleet_layer_on_change, collector) < 0)
		return;
	fleet->watched.device = status.st_dev;
	fleet->watched.inode = status.st_ino;
	fleet_layer_read_soon(fleet);
}

int fleet_layer_open(struct collector *collector)
{
	struct fleet_layer *fleet = &collector->fleet;
	int result;

	if (!fleet->directory[0])
		return 0;
	result = sd_event_add_time_relative(collector->event, &fleet->read_timer, CLOCK_MONOTONIC, 0,
					    1, fleet_layer_on_time, collector);
	if (result >= 0)
		result = sd_event_source_set_enabled(fleet->read_timer, SD_EVENT_OFF);
	if (result >= 0)
		result = sd_event_add_time(collector->event, &fleet->end_timer, CLOCK_BOOTTIME, 0, 1,
					   fleet_layer_on_end, collector);
	if (result >= 0)
		result = sd_event_source_set_priority(fleet->end_timer, FLEET_PRIORITY);
	if (result < 0)
		return result;
	lease_end_await(fleet);
	fleet_layer_check(collector);
	return 0;
}

void fleet_layer_close(struct collector *collector)
{
	struct fleet_layer *fleet = &collector->fleet;

	sd_event_source_disable_unref(fleet->watch);
	sd_event_source_disable_unref(fleet->read_timer);
	sd_event_source_disable_unref(fleet->end_timer);
	policy_fleet_free(&fleet->policy);
}
