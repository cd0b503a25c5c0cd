/* SPDX-License-Identifier: MIT */
/*
 * The keeper: of all processes of rdma_monitor the one that looks after accounting and guard. A
 * lock says who it is. Knows in which order things are loaded and taken out, and nothing of
 * programs.
 */
#ifndef MONITOR_TOOL_KEEPER_H
#define MONITOR_TOOL_KEEPER_H

#include <stddef.h>

#include "base/problem.h"
#include "monitor/accounting/loader.h"

struct keeper;

/*
 * Becomes the keeper: loads everything, or takes up what another left. 0, and a sentence if there
 * can be no guard; KEEPER_OTHER when a living process is the keeper already; or -errno with a
 * sentence.
 */
enum { KEEPER_OTHER = 1 };
int keeper_start(struct keeper **ret_keeper, const struct loader_options *options,
		 char problem[PROBLEM_SIZE]);

/* What it stands on. */
const struct probe *keeper_probe(const struct keeper *keeper);

/* Why there is no guard; "" if there is one, or can be none. */
const char *keeper_guard_problem(const struct keeper *keeper);

/* To be called a few times a second. -ENOENT when somebody unloaded everything. */
int keeper_tend(struct keeper *keeper, char problem[PROBLEM_SIZE]);

/* Ends looking after it; what is pinned stays. */
void keeper_stop(struct keeper *keeper);

/* Takes everything out of the kernel. -ENOENT when there was nothing. */
int keeper_unload(const char *directory, char problem[PROBLEM_SIZE]);

#endif
