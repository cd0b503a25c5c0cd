/* SPDX-License-Identifier: MIT */
/*
 * Which processes have objects in the kernel: members, and processes without the library,
 * with the tenant that the rules give them.
 */
#ifndef COLLECTOR_COVERAGE_H
#define COLLECTOR_COVERAGE_H

#include "collector/kernel_usage.h"

struct collector;

/* Finds the members among the processes of the sample, who come and go between two samples; then
 * the uncovered ones. One that is new is an event. */
void coverage_find(struct collector *collector);

/* The answer to library_look: 1, 0, or -errno where that cannot be seen. */
void coverage_library_seen(struct collector *collector, pid_t pid, uint64_t start, int result);

/* The next uncovered process, or NULL. *cursor is 0 at first. */
const struct kernel_process *coverage_next(const struct kernel_usage *usage, unsigned *cursor);

#endif
