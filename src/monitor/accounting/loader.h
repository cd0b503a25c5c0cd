/* SPDX-License-Identifier: MIT */
/*
 * Brings the accounting into the kernel and keeps it complete while modules come and go. Maps and
 * links are pinned under a directory of the bpf file system, so counting does not end with the
 * process that began it; on kernels that cannot pin kprobes (before 5.15) it does, and the next one
 * counts anew what is there. Who may do this, and the guard beside it, are the keeper's business.
 */
#ifndef MONITOR_ACCOUNTING_LOADER_H
#define MONITOR_ACCOUNTING_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "monitor/kernel/probe.h"

struct loader;

struct loader_options {
	struct probe_options probe;
	const char *directory; /* where to pin */
	unsigned tables; /* places for objects of guarded processes, twice that for all, fewer for
				* threads and rows; 0: as many as this machine takes easily */
};

/* Loads the accounting, or takes up what another left. 0, or -errno with a sentence. */
int loader_open(struct loader **ret_loader, const struct loader_options *options,
		char problem[PROBLEM_SIZE]);

/* What it stands on. */
const struct probe *loader_probe(const struct loader *loader);

/* To be called a few times a second: attaches to modules that came (again). -ENOENT when
 * somebody unloaded everything. */
int loader_tend(struct loader *loader, char problem[PROBLEM_SIZE]);

/* Others have attached programs to the same functions: calls that were missed then are looked
 * for. */
void loader_attached(struct loader *loader);

/* Ends looking after it; what is pinned stays. */
void loader_close(struct loader *loader);

#endif
