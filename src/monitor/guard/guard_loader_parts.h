/* SPDX-License-Identifier: MIT */
/*
 * What the files of the guard's loader share: guard_loader.c has the maps and decides what is to
 * be done, guard_attach.c loads and attaches programs, guard_recount.c finds what these missed.
 * No other file includes it.
 */
#ifndef MONITOR_GUARD_GUARD_LOADER_PARTS_H
#define MONITOR_GUARD_GUARD_LOADER_PARTS_H

#include <limits.h>

#include "base/problem.h"
#include "monitor/guard/guard_loader.h"
#include "monitor/guard/guard_rows.h"
#include "monitor/reader/rows.h"

struct guard;

struct guard_loader {
	char directory[PATH_MAX];
	unsigned places;	     /* for objects, in tables that are made */
	unsigned most[GUARD_TABLES]; /* places that there are */
	struct guard_head *head;
	struct guard_counts *counts;
	struct guard_rule *rules;
	struct monitor_head *monitor; /* of the accounting, */
	struct monitor_row *owners;   /* and its rows */
	__u32 tried;		      /* ways that were tried, and not had */
	unsigned patience;	      /* times until they are tried again */
	/* When all was last looked for: */
	__u64 misses; /* of the programs */
	__u64 epoch, seeded_ns;
	/* Until then it is not done again for the same reason; likewise of threads. */
	__u64 rest_ns, threads_rest_ns;
	/* What the count of the host has more than those of all tenants, and in how many looks. */
	__s64 host_excess[KIND_COUNT];
	unsigned host_looks[KIND_COUNT];
};

/* ---- guard_loader.c */

/* The programs and maps, opened for a change; none of the programs is to be loaded yet. */
int guard_loader_object_open(struct guard_loader *loader, struct guard **ret_object,
			     char problem[PROBLEM_SIZE]);

/* ---- guard_attach.c */

/* Loads and attaches what ways into the kernel need, if this kernel has all of it; and the
 * contrary. */
int guard_attach(struct guard_loader *loader, const struct probe_options *options, __u32 ways,
		 char problem[PROBLEM_SIZE]);
void guard_detach(struct guard_loader *loader, __u32 ways);

/* Calls that the programs missed, as far as the kernel counts them. */
__u64 guard_misses(const struct guard_loader *loader);

/* ---- guard_recount.c */

/* Puts right what the programs missed, where there is a reason to look. */
void guard_recount_tend(struct guard_loader *loader);

#endif
