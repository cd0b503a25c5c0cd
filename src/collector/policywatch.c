/* SPDX-License-Identifier: MIT */
/* Policy files that change: they are read again without a command. */
#include "collector/policywatch.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "collector/control.h"

enum { CHANGE_US = 50000 }; /* files are read so long after the last change of one */

static void policywatch_tenants(struct collector *collector);

static int policywatch_reload(sd_event_source *source, uint64_t now, void *closure)
{
	policywatch_tenants(closure); /* it may be another directory now */
	collector_reload(closure);
	return 0;
}

/* An editor writes a file in several steps: wait until they are done. */
static int policywatch_file(sd_event_source *source, const struct inotify_event *event,
			    void *closure)
{
	struct collector *collector = closure;

	/* The copy of the last good policy may be beside it, and is our own. */
	if (event->len && !strncmp(event->name, CONTROL_GOOD, sizeof(CONTROL_GOOD) - 1))
		return 0;
	if (event->len && strcmp(event->name, strrchr(collector->policy_path, '/') + 1) &&
	    strcmp(event->name, "tenants.d") && !strstr(event->name, ".conf"))
		return 0;
	sd_event_source_set_time_relative(collector->change_timer, CHANGE_US);
	return sd_event_source_set_enabled(collector->change_timer, SD_EVENT_ONESHOT);
}

/* Changes of files are seen in their directory, where editors rename new ones in. */
static int policywatch_beside(struct collector *collector, sd_event_source **ret_source,
			      const char *name)
{
	char path[POLICY_PATH + 16];
	const char *slash = strrchr(collector->policy_path, '/');

	snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - collector->policy_path),
		 collector->policy_path, name);
	return sd_event_add_inotify(collector->event, ret_source, path,
				    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
					    IN_CREATE | IN_ONLYDIR,
				    policywatch_file, collector);
}

static void policywatch_tenants(struct collector *collector)
{
	collector->tenants_watch = sd_event_source_disable_unref(collector->tenants_watch);
	policywatch_beside(collector, &collector->tenants_watch, "tenants.d");
}

int policywatch_open(struct collector *collector)
{
	int result = sd_event_add_time_relative(collector->event, &collector->change_timer,
						CLOCK_MONOTONIC, 0, 1, policywatch_reload,
						collector);

	if (result >= 0)
		result = sd_event_source_set_enabled(collector->change_timer, SD_EVENT_OFF);
	if (result < 0)
		return result;
	result = policywatch_beside(collector, NULL, ".");
	if (result < 0)
		log_write(&collector->log, LOG_INFO,
			  "changes of %s are not watched (%s); use SIGHUP or reload",
			  collector->policy_path, strerror(-result));
	policywatch_tenants(collector);
	return 0;
}

void policywatch_close(struct collector *collector)
{
	sd_event_source_disable_unref(collector->change_timer);
	sd_event_source_disable_unref(collector->tenants_watch);
}
