/* SPDX-License-Identifier: MIT */
/*
 * What the files of the accounting's loader share: loader.c decides what is to be done, attach.c
 * loads and attaches programs, reconcile.c finds what these missed. No other file includes it.
 */
#ifndef MONITOR_ACCOUNTING_LOADER_PARTS_H
#define MONITOR_ACCOUNTING_LOADER_PARTS_H

#include <limits.h>

#include "base/problem.h"
#include "monitor/accounting/loader.h"

#define LOADER_EXIT_LINK "process_exit"

struct accounting;
struct bpf_link;

/* The programs of a hook, as accounting.bpf.c names them; the entry's may be missing. */
struct loader_hook {
	const char *name;
	__u64 counters; /* that are wrong without it */
};
extern const struct loader_hook loader_hooks[MONITOR_HOOKS];

struct loader_attached {
	struct bpf_link *link, *entry; /* of links that cannot be pinned */
};

struct loader {
	struct loader_options options;
	char directory[PATH_MAX];
	struct probe probe;
	struct monitor_head *head;
	struct monitor_row *rows;
	struct accounting *object; /* loaded; NULL: not kept, see loader_keeps_object */
	struct loader_attached hook[MONITOR_HOOKS];
	__u64 address[MONITOR_HOOKS]; /* as in the head: where each is attached */
	__u64 modules, activity;      /* when it was last complete */
	__u64 attached_ns;	      /* when something was last attached, also of the guard */
	struct kernel_offsets loaded; /* that the object was made with, */
	struct kernel_offsets listed; /* and the lists */
	bool taken_up;		      /* from another who left it */
	unsigned failures;	      /* to attach, in a row */
	__u64 retry_ns;		      /* after a failure to list objects, not before */
};

/* ---- attach.c */

/* What is to be done of all that can be attached. */
struct loader_missing {
	bool hook[MONITOR_HOOKS], exit, lists;
};

/* The maps as memory, filled in where they were just made. */
int loader_memory_open(struct loader *loader, char problem[PROBLEM_SIZE]);

/* Loads the programs that are missing; attaches them, and lets go what is not there any more. */
int loader_object_load(const struct loader *loader, const struct loader_missing *missing,
		       struct accounting **ret_object, char problem[PROBLEM_SIZE]);
int loader_object_attach(struct loader *loader, const struct accounting *object,
			 const struct loader_missing *missing, char problem[PROBLEM_SIZE]);

/* Whether programs may be attached again later, without being loaded again. */
bool loader_keeps_object(const struct loader *loader);

/* Attached where the function is now; likewise the end of a process. */
bool loader_hook_holds(const struct loader *loader, unsigned hook);
bool loader_exit_holds(const struct loader *loader);

/* Says in the head that we are alive, if links end with us. */
void loader_beat(struct loader *loader);

/* ---- reconcile.c */

/* The programs that list what is there are in place, and read the modules as they are now. */
bool loader_lists_hold(const struct loader *loader);

/* Calls that the programs missed, as far as the kernel counts them. */
__u64 loader_misses(const struct loader *loader);

/* Whether something may have been missed; looks for it, and puts it right. */
bool loader_is_due(const struct loader *loader);
int loader_catch_up(struct loader *loader, char problem[PROBLEM_SIZE]);

#endif
