/* SPDX-License-Identifier: MIT */
/*
 * Whose the processes are that have something in the kernel: those of members, and those that
 * nobody guards, with the tenant that they belong to by the rules.
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
