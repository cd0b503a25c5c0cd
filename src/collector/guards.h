/* SPDX-License-Identifier: MIT */
/*
 * The tenants whose limits the kernel keeps, too. From the policy come the cgroups that a
 * tenant is, and what it may have; they are written into the guard's maps, and below that
 * into rdma.max of the cgroups, which is weaker and needs no guard. All of it stays in force
 * when the collector ends. What the guard refused becomes an event. This file grants nothing
 * and reads no process.
 */
#ifndef COLLECTOR_GUARDS_H
#define COLLECTOR_GUARDS_H

#include <limits.h>

#include "monitor/guard/guard_maps.h"
#include "proto/messages.h"

struct collector;
struct guards_cgroup;
struct guards_tenant;

enum { GUARDS_REASON = 256 };

/* All zeros before the first look. */
struct guards {
	struct monitor_guard guard;  /* head NULL: there is none, */
	char problem[PROBLEM_SIZE];  /* and why */
	char directory[PATH_MAX];
	bool looked;		      /* for a guard, at least once */
	uint64_t applied_ns, took_ns; /* when that was last done, and how long it took */
	__u64 seen;		      /* number of the last entry of the log that became an event */
	bool changed;		      /* cgroups, and the kernel does not know yet */
	struct guards_cgroup *cgroups;
	void *by_inode; /* the same, as a tree */
	struct guards_tenant *tenants;
};

/* After each change of the policy, and every second: cgroups come and go. */
void guards_apply(struct collector *collector);

/* Before an answer: the same, if that is not just done. */
void guards_look(struct collector *collector);

/* Every second, and before an answer that shows events: those of the guard's log. */
void guards_listen(struct collector *collector);

/* After limits in force have changed that the policy did not: rdma.max follows. */
void guards_rdmacg_follow(struct collector *collector);

void guards_close(struct guards *guards);

/* ---- what was found */

/* The guard itself, and the guard of a tenant. */
void guards_describe_host(const struct collector *collector, struct proto_guard *ret_row);
void guards_describe_tenant(const struct collector *collector, const char *name,
			    struct proto_guard *ret_row);

#endif
