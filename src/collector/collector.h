/* SPDX-License-Identifier: MIT */
/*
 * The collector as a whole: books, members, policy, events and the socket, and what
 * holds them together. start.c makes one, answers.c answers its clients, control.c keeps
 * the policy.
 */
#ifndef COLLECTOR_COLLECTOR_H
#define COLLECTOR_COLLECTOR_H

#include <systemd/sd-event.h>

#include "base/log.h"
#include "base/problem.h"
#include "collector/books.h"
#include "collector/drift.h"
#include "collector/events.h"
#include "collector/fairness.h"
#include "collector/fleet_layer.h"
#include "collector/guards.h"
#include "collector/kernel_usage.h"
#include "collector/members.h"
#include "collector/pacing.h"
#include "policy/policy.h"
#include "collector/rates.h"
#include "collector/server.h"
#include "collector/reconcile.h"
#include "collector/when_rules.h"

#define COLLECTOR_TENANT "default" /* of processes that no rule names */

struct accounts;
struct helper;
struct pods;
struct subject;

struct collector {
	struct log log;
	sd_event *event;
	struct server *server;
	struct books books;
	struct members members;
	struct events events;
	struct kernel_usage kernel;
	struct drift drift;
	struct reconcile reconcile;
	struct guards guards;
	struct when_rules rules;
	struct accounts *accounts;
	struct helper *looks; /* of library_loaded.c */
	struct pods *pods;
	struct rates rates;
	struct fairness fairness;
	struct pacing pacing;
	/* What is said in several places, each over the one before, and what comes of it. */
	struct policy *environment, *files, *runtime, *effective;
	struct fleet_layer fleet; /* a fourth one, between files and commands */
	char policy_path[POLICY_PATH];
	bool policy_must_exist;		    /* somebody named it */
	char runtime_path[POLICY_PATH * 2]; /* where the commands' part is kept */
	char good_path[POLICY_PATH * 2];    /* where the last good policy of the files is kept */
	char problem[PROBLEM_SIZE];	    /* why the last reload had no effect */
	bool reload_waits;		    /* for names; nobody asked for it by a request */
	unsigned reloads;
	unsigned policy_generation; /* counts what was put into force */
	uint64_t ticks;	   /* seconds in which the tasks were run */
	uint64_t started;  /* CLOCK_MONOTONIC, seconds */
	sd_event_source *orphan_timer, *change_timer, *policy_watch, *tenants_watch, *search_turn;
	size_t policy_watched; /* how much of policy_path is the directory that is watched */
};

/* ---- collector.c */

/* Books an event and tells the subscribers. */
const struct proto_event *collector_event(struct collector *collector,
					  const struct proto_event *event);
/* One of a member. */
void collector_member_event(struct collector *collector, unsigned member,
			    enum proto_event_type type);
/* For struct members; the closure is the collector. */
void collector_member_ended(void *closure, unsigned member, enum member_end how);

/* Takes note of members that have ended. */
void collector_dispatch(struct collector *collector);
/* The search for heirs and pages goes on, if there is one. */
void collector_search_await(struct collector *collector);

/* Reads the policy files again, now or when the names in them are known. */
void collector_reload(struct collector *collector);
/* What waits for names of users and groups goes on. */
void collector_names_known(struct collector *collector);

/* Everything that the loop calls, but the server. */
int collector_loop_prepare(struct collector *collector);
void collector_loop_close(struct collector *collector);

/* What is done regularly. */
#define TASK(name, seconds, function) void function(struct collector *collector);
#include "collector/tasks.def"
#undef TASK

#endif
