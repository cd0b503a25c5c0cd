/* SPDX-License-Identifier: MIT */
/*
 * Policy files that change: they are read again without a command. Where the policy's directory
 * does not exist, as on a fresh installation, the nearest directory above it is watched until it
 * does.
 */
#include "collector/policywatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "collector/control.h"

enum {
	CHANGE_US = 50000, /* files are read so long after the last change of one */
	CHANGES = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE |
		  IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
};

static int policywatch_directory(struct collector *collector);
static void policywatch_tenants(struct collector *collector);

/* How much of the policy's path is its directory. */
static size_t policywatch_whole(const struct collector *collector)
{
	return (size_t)(strrchr(collector->policy_path, '/') - collector->policy_path);
}

static int policywatch_reload(sd_event_source *source, uint64_t now, void *closure)
{
	struct collector *collector = closure;

	/* These may be other directories now. */
	policywatch_directory(collector);
	policywatch_tenants(collector);
	if (collector->policy_watched == policywatch_whole(collector) || collector->files->file[0])
		collector_reload(collector);
	return 0;
}

/* An editor writes a file in several steps: wait until they are done. */
static int policywatch_wait(struct collector *collector)
{
	sd_event_source_set_time_relative(collector->change_timer, CHANGE_US);
	return sd_event_source_set_enabled(collector->change_timer, SD_EVENT_ONESHOT);
}

/* Files of a ConfigMap are links that lead through this one, which the kubelet replaces. */
#define CONFIGMAP_LINK "..data"

static int policywatch_file(sd_event_source *source, const struct inotify_event *event,
			    void *closure)
{
	struct collector *collector = closure;

	/* The copy of the last good policy may be beside it, and is our own. */
	if (event->len && !strncmp(event->name, CONTROL_GOOD, sizeof(CONTROL_GOOD) - 1))
		return 0;
	if (event->len && strcmp(event->name, strrchr(collector->policy_path, '/') + 1) &&
	    strcmp(event->name, "tenants.d") && strcmp(event->name, CONFIGMAP_LINK) &&
	    !strstr(event->name, ".conf"))
		return 0;
	return policywatch_wait(collector);
}

/* In a directory above the policy's: whether the next one on the way has come. */
static int policywatch_above(sd_event_source *source, const struct inotify_event *event,
			     void *closure)
{
	struct collector *collector = closure;
	const char *next = collector->policy_path + collector->policy_watched + 1;
	size_t length = strcspn(next, "/");

	if (event->len && (strncmp(event->name, next, length) || event->name[length]))
		return 0;
	return policywatch_wait(collector);
}

/* Changes of files are seen in their directory, where editors rename new ones in. */
static int policywatch_add(struct collector *collector, sd_event_source **ret_source, size_t length,
			   const char *name, sd_event_inotify_handler_t seen)
{
	char path[POLICY_PATH + 16];

	snprintf(path, sizeof(path), "%.*s/%s", (int)length, collector->policy_path, name);
	return sd_event_add_inotify(collector->event, ret_source, path, CHANGES, seen, collector);
}

/* The policy's directory, or the nearest one above it that exists. */
static int policywatch_nearest(struct collector *collector)
{
	size_t whole = policywatch_whole(collector), length = whole;
	int result;

	collector->policy_watch = sd_event_source_disable_unref(collector->policy_watch);
	for (;;) {
		result = policywatch_add(collector, &collector->policy_watch, length, ".",
					 length == whole ? policywatch_file : policywatch_above);
		if ((result != -ENOENT && result != -ENOTDIR) || length == 0)
			break;
		while (collector->policy_path[--length] != '/')
			;
	}
	collector->policy_watched = length;
	return result;
}

static int policywatch_directory(struct collector *collector)
{
	char next[POLICY_PATH];
	int result, tries = 0;

	/* A directory that came between the look and the watch would never be told. */
	do {
		size_t length;

		result = policywatch_nearest(collector);
		length = collector->policy_watched + 1;
		length += strcspn(collector->policy_path + length, "/");
		snprintf(next, sizeof(next), "%.*s", (int)length, collector->policy_path);
	} while (result >= 0 && collector->policy_watched < policywatch_whole(collector) &&
		 !access(next, F_OK) && ++tries < 16);
	return result;
}

static void policywatch_tenants(struct collector *collector)
{
	collector->tenants_watch = sd_event_source_disable_unref(collector->tenants_watch);
	policywatch_add(collector, &collector->tenants_watch, policywatch_whole(collector),
			"tenants.d", policywatch_file);
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
	result = policywatch_directory(collector);
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
	sd_event_source_disable_unref(collector->policy_watch);
	sd_event_source_disable_unref(collector->tenants_watch);
}
