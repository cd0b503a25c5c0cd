/* SPDX-License-Identifier: MIT */
/*
 * The guard in the kernel, from outside: telling it which cgroups are guarded and what they
 * may have, and reading what it counted and refused. Needs no libbpf, and no right but that
 * to open its pinned maps. The collector decides which cgroups belong to which tenant; the
 * loader loads the programs.
 */
#ifndef MONITOR_GUARD_GUARD_MAPS_H
#define MONITOR_GUARD_GUARD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/problem.h"
#include "monitor/guard/guard_rows.h"
#include "monitor/guard/guard_rules.h"

/* An entry of guard_tenants; also as a file has it, where there is no bpf file system: an
 * array of GUARD_CGROUPS, those with cgroup 0 free. */
struct guard_cgroup {
	__u64 cgroup;
	__u32 slot;
	__u32 unused;
};

enum { GUARD_MAPPED = 5 }; /* maps that are memory: head, limits, counts, log and rules */

struct monitor_guard {
	struct guard_head *head;
	struct guard_limits *limits;
	const struct guard_counts *counts;
	const struct guard_entry *log;
	struct guard_rule *rules;
	struct guard_cgroup *file; /* of the cgroups; NULL: it is a map, */
	int map;		   /* and this its descriptor */
	ino_t inode[GUARD_MAPPED]; /* of what was opened */
};

/*
 * Opens the guard of a directory. 0, or -errno with a sentence: -ENOENT when there is none,
 * -EPROTO when it is of another version.
 */
int monitor_guard_open(struct monitor_guard *ret_guard, const char *directory,
		       char problem[PROBLEM_SIZE]);
void monitor_guard_close(struct monitor_guard *guard);

/* Whether this version can take up the guard of a directory: 0 also where there is none, or
 * -errno with a sentence. */
int monitor_guard_check(const char *directory, char problem[PROBLEM_SIZE]);

/* Whether what was opened is still what the directory holds. */
bool monitor_guard_is_current(const struct monitor_guard *guard, const char *directory);

/* The cgroups that have a slot, for the caller to free; how many there are, or -errno. */
int monitor_guard_cgroups(const struct monitor_guard *guard, struct guard_cgroup **ret_cgroups);

/* Gives a cgroup a slot, or takes it; 0 or -errno, and for -E2BIG there are too many. */
int monitor_guard_cgroup_set(const struct monitor_guard *guard, __u64 cgroup, __u32 slot);
int monitor_guard_cgroup_clear(const struct monitor_guard *guard, __u64 cgroup);

/* The rules in force, and their number; others in their place, at once. */
const struct guard_rule *monitor_guard_rules(const struct monitor_guard *guard,
					     unsigned *ret_count);
void monitor_guard_rules_set(const struct monitor_guard *guard, const struct guard_rule *rules,
			     unsigned count);

/* What tells the kernel that cgroups have changed; after the last of them. */
void monitor_guard_cgroups_changed(const struct monitor_guard *guard);

/* Whether an rdma_monitor runs that attaches what is wanted. */
bool monitor_guard_is_tended(const struct monitor_guard *guard);

/* The name of the tenant that has a slot; "" if none had it. */
void monitor_guard_name_set(const struct monitor_guard *guard, __u32 slot, const char *tenant);
bool monitor_guard_is_named(const struct monitor_guard *guard, __u32 slot, const char *tenant);

void monitor_guard_limit(const struct monitor_guard *guard, __u32 slot, enum kind kind,
			 __u64 limit);

/* Whether the limits of GUARD_HOST are the tenant's, too. */
void monitor_guard_host_limited(const struct monitor_guard *guard, __u32 slot, bool limited);

/* The devices that the tenant of a slot may use, bit n for uverbsN; NULL: all. */
void monitor_guard_devices(const struct monitor_guard *guard, __u32 slot,
			   const __u64 bits[GUARD_DEVICES / 64]);

/* Each number is right, though not all of them may be of the same moment. */
void monitor_guard_counts(const struct monitor_guard *guard, __u32 slot,
			  struct guard_counts *ret_counts);

/* How many places more a tenant may take in a table at this moment; none if it is below 1. */
__s64 monitor_guard_room(const struct monitor_guard *guard, __u32 slot, enum guard_table table);

/*
 * A copy of the entry after number *seen, which becomes its number; false if there is none
 * yet. Entries that are overwritten already are added to *lost.
 */
bool monitor_guard_log(const struct monitor_guard *guard, __u64 *seen, __u64 *lost,
		       struct guard_entry *ret_entry);

#endif
