/* SPDX-License-Identifier: MIT */
/*
 * Brings the guard (guard.bpf.c) into the kernel when a tenant needs it, and corrects its
 * counts: objects that existed before, and objects that the programs missed. Its maps are
 * made with the accounting's; its programs are attached once the collector has a tenant to
 * guard, and stay.
 */
#ifndef MONITOR_GUARD_GUARD_LOADER_H
#define MONITOR_GUARD_GUARD_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "monitor/kernel/probe.h"

struct guard_loader;

/* Makes the guard's maps, with so many places in each table, or takes up those that are there. */
int guard_loader_open(struct guard_loader **ret_loader, const char *directory, unsigned places,
		      char problem[PROBLEM_SIZE]);

/* A few times a second: does what the collector wants by now. `options` is what the accounting
 * stands on. What fails is said in the guard's head, for the collector. True if programs were
 * attached or detached: calls that were under way then are seen by nobody, see pins_attach. */
bool guard_loader_tend(struct guard_loader *loader, const struct probe_options *options);

/* What is in force stays so. */
void guard_loader_close(struct guard_loader *loader);

/* Nobody is refused or killed any more, and everything may be taken out. */
void guard_loader_disarm(const char *directory);

#endif
