/* SPDX-License-Identifier: MIT */
/*
 * Watching without BPF: the kernel's list is asked for again and again, and what it says
 * is kept in files that look like the maps, for the same readers. What is made and gone
 * between two questions is never seen. How the kernel is asked is netlink.h's business.
 */
#ifndef MONITOR_POLLING_POLLING_H
#define MONITOR_POLLING_POLLING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "monitor/reader/rows.h"

struct netlink_object;
struct polling;

/*
 * Makes the files in a directory (NULL or "": MONITOR_FILES), with the directories above it, in
 * place of those of an earlier run. 0, or -errno with a sentence.
 */
int polling_open(struct polling **ret_polling, const char *directory, char problem[PROBLEM_SIZE]);

/*
 * Asks, and brings the rows up to date. 0, or -errno with a sentence; the rows are then as
 * they were. -ESTALE: the files have been removed, or another has put its own there.
 */
int polling_step(struct polling *polling, char problem[PROBLEM_SIZE]);

/* The second half of a step. The objects come out in another order. 0 or -ENOMEM. */
int polling_update(struct polling *polling, struct netlink_object *objects, size_t count,
		   __u64 observed);

/* The files stay, or go with it if they are still its own. */
void polling_close(struct polling *polling, bool remove);

#endif
