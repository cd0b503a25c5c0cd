/* SPDX-License-Identifier: MIT */
/*
 * The collector as a whole: books, members, policy, events and the socket, and what
 * holds them together. main.c makes one and runs it; answers.c answers its clients;
 * control.c keeps policy and limits.
 */
#ifndef COLLECTOR_COLLECTOR_H
#define COLLECTOR_COLLECTOR_H

#include <systemd/sd-event.h>

#include "base/log.h"
#include "collector/books.h"
#include "collector/events.h"
#include "collector/guards.h"
#include "collector/members.h"
#include "policy/policy.h"
#include "collector/server.h"
#include "collector/truth.h"

#define COLLECTOR_TENANT "default" /* of processes that no rule names */

struct subject;

struct collector {
	struct log log;
	sd_event *event;
	struct server *server;
	struct books books;
	struct members members;
	struct events events;
	struct truth truth;
	struct guards guards;
	/* What is said in three places, each over the one before, and what comes of it. */
	struct policy *environment, *files, *runtime, *effective;
	char policy_path[POLICY_PATH];
	bool policy_must_exist;		    /* somebody named it */
	char runtime_path[POLICY_PATH * 2]; /* where the commands' part is kept */
	char good_path[POLICY_PATH * 2];    /* where the last good policy of the files is kept */
	char problem[POLICY_PROBLEM];	    /* why the last reload had no effect */
	unsigned reloads;
	unsigned policies; /* counts what was put into force */
	uint64_t started;  /* CLOCK_MONOTONIC, seconds */
	sd_event_source *orphan_timer, *change_timer, *tenants_watch, *search_turn;
};

/* ---- control.c */

/* What the collector's own environment says of the host. -EINVAL with the variable's name. */
int control_environment(struct collector *collector, char problem[POLICY_PROBLEM]);

#define CONTROL_GOOD "last-good" /* how the name of that copy begins */

/*
 * What the files said when they were last in force, as it was kept in that directory: until
 * control_reload finds the files in order, it is what they say. Nothing happens where nothing
 * was kept.
 */
void control_recall(struct collector *collector, const char *directory);

/* Keeps what the files say for the next start. */
void control_keep(struct collector *collector);

/*
 * Reads the files anew; on failure everything stays as it was, and the reason is kept. Files
 * that are away, cut, or silent on what they said before are a failure, unless somebody said
 * that this is wanted.
 */
enum reload { RELOAD_WHOLE, RELOAD_LESS };
int control_reload(struct collector *collector, enum reload how);

/* A command's change of one section, kept over restarts. */
int control_change(struct collector *collector, const char *section, const char *text,
		   char problem[POLICY_PROBLEM]);
int control_tenant_remove(struct collector *collector, const char *name,
			  char problem[POLICY_PROBLEM]);

/* Puts the effective policy into the books, and into force. */
int control_apply(struct collector *collector);

/* The number of a device; if it is new, with its limits. */
unsigned control_device(struct collector *collector, const char *name);

/* ---- answers.c */

void answer(void *closure, const struct request *request);

/* For struct members. */
void collector_member_ended(void *closure, unsigned member, enum member_end how);

/* Takes note of members that have ended, and of orphans that are none any more. */
void collector_dispatch(struct collector *collector);
void collector_orphans(struct collector *collector);
/* A step of the search for heirs and pages. */
void collector_search(struct collector *collector);

/* The tenant by the rules in force. */
const char *collector_tenant_name(const struct collector *collector, const struct subject *subject);

/* Books an event and tells the subscribers. */
const struct proto_event *collector_event(struct collector *collector,
					  const struct proto_event *event);

#endif
