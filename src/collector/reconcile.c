/* SPDX-License-Identifier: MIT */
/* Kernel and books; see reconcile.h. */
#include "collector/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/collector.h"
#include "collector/coverage.h"
#include "collector/drift.h"
#include "collector/grants.h"

/* Sums are as old as this at most when somebody looks. */
#define FRESH_NS 100000000u

const struct kernel_process *reconcile_member(const struct collector *collector, unsigned member)
{
	const struct book_member *row = &collector->books.file->member[member];

	return kernel_process_of(&collector->kernel, row->pid, row->start);
}

/* ---- sums */

const struct kernel_sums *reconcile_sums(const struct collector *collector, int tenant)
{
	static const struct kernel_sums nothing;
	const struct reconcile *reconcile = &collector->reconcile;

	if (tenant < 0)
		return &reconcile->host;
	return reconcile->tenant[tenant] ? reconcile->tenant[tenant] : &nothing;
}

/* To be added to; NULL when there is no memory. */
static struct kernel_sums *sums_of_tenant(struct reconcile *reconcile, unsigned tenant)
{
	if (!reconcile->tenant[tenant])
		reconcile->tenant[tenant] = calloc(1, sizeof(*reconcile->tenant[tenant]));
	return reconcile->tenant[tenant];
}

static void sums_add(struct kernel_sums *sums, const struct kernel_part *part)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		sums->total[kind] += part->kernel[kind];
		sums->device[part->device][kind] += part->kernel[kind];
	}
}

static void sums_add_process(struct collector *collector, const struct kernel_process *process)
{
	const struct kernel_coverage *coverage = &process->coverage;
	struct reconcile *reconcile = &collector->reconcile;
	uint32_t tenant = coverage->uncovered ? coverage->tenant : BOOKS_NOBODY;
	const struct kernel_part *part = NULL;
	struct kernel_sums *sums;

	if (coverage->member != BOOKS_NOBODY)
		tenant = collector->books.file->member[coverage->member].tenant;
	/* Nobody's is who has ended unregistered, and may be known by the next sample. */
	sums = tenant == BOOKS_NOBODY ? NULL : sums_of_tenant(reconcile, tenant);
	while ((part = kernel_part_next(&collector->kernel, process, part))) {
		sums_add(&reconcile->host, part);
		if (sums)
			sums_add(sums, part);
	}
	reconcile->host.uncovered += coverage->uncovered;
	if (sums)
		sums->uncovered += coverage->uncovered;
}

static void sums_add_drift(struct collector *collector, unsigned member)
{
	struct reconcile *reconcile = &collector->reconcile;
	const int64_t *drift = drift_of(collector, member);
	struct kernel_sums *owners[] = {
		&reconcile->host,
		drift ? sums_of_tenant(reconcile, collector->books.file->member[member].tenant) :
			NULL,
	};

	for (unsigned i = 0; drift && i < sizeof(owners) / sizeof(owners[0]); i++) {
		if (!owners[i])
			continue;
		owners[i]->drifting++;
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			owners[i]->drift[kind] += drift[kind];
	}
}

static void sums_make(struct collector *collector)
{
	struct reconcile *reconcile = &collector->reconcile;
	const struct kernel_usage *usage = &collector->kernel;
	const struct book_file *file = collector->books.file;

	memset(&reconcile->host, 0, sizeof(reconcile->host));
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (reconcile->tenant[i])
			memset(reconcile->tenant[i], 0, sizeof(*reconcile->tenant[i]));
	for (unsigned i = 0; i < kernel_processes(usage); i++)
		sums_add_process(collector, kernel_process_at(usage, i));
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		reconcile->host.total[kind] += kernel_unowned(usage)[kind];
	for (unsigned i = 0; i < file->members_high; i++)
		if (file->member[i].state == BOOK_TAKEN)
			sums_add_drift(collector, i);
	reconcile->summed = kernel_is_watched(usage);
}

/* ---- when */

void reconcile_look(struct collector *collector)
{
	struct reconcile *reconcile = &collector->reconcile;
	struct kernel_usage *usage = &collector->kernel;

	if (!usage->looked || kernel_is_watched(usage))
		kernel_find(usage, &collector->log);
	if (kernel_is_watched(usage)) {
		if (!usage->taken_ns || clock_now_ns() - usage->taken_ns > FRESH_NS)
			kernel_sample(usage);
		coverage_find(collector);
	}
	if (kernel_is_watched(usage) || reconcile->summed)
		sums_make(collector);
}

void reconcile_measure(struct collector *collector)
{
	const struct book_file *file = collector->books.file;
	struct reconcile *reconcile = &collector->reconcile;
	struct kernel_usage *usage = &collector->kernel;

	kernel_find(usage, &collector->log);
	if (kernel_is_watched(usage)) {
		kernel_sample(usage);
		coverage_find(collector);
		for (unsigned i = 0; i < file->members_high; i++)
			if (file->member[i].state == BOOK_TAKEN)
				drift_compare(collector, i, reconcile_member(collector, i));
	}
	if (kernel_is_watched(usage) || reconcile->summed)
		sums_make(collector);
}

/* Whether the monitor would know of what the member had. */
static bool kernel_would_know(const struct collector *collector, unsigned member)
{
	const struct books *books = &collector->books;
	uint64_t observed = kernel_observed(&collector->kernel);

	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (kind_rows[kind].drift && !(observed >> kind & 1) &&
			    grants_used(books, lease, kind))
				return false;
	return true;
}

enum member_remains reconcile_remains(void *closure, unsigned member, uint64_t since)
{
	struct collector *collector = closure;
	struct kernel_usage *usage = &collector->kernel;
	const struct kernel_process *process;

	if (!usage->looked || (kernel_is_watched(usage) && usage->taken_ns < since))
		kernel_find(usage, &collector->log);
	if (!kernel_is_watched(usage) || !kernel_is_exact(usage))
		return REMAINS_UNKNOWN;
	if (usage->taken_ns < since)
		kernel_sample(usage);
	process = reconcile_member(collector, member);
	if (process && process->holds)
		return REMAINS_SOMETHING;
	return kernel_is_complete(usage) && kernel_would_know(collector, member) ? REMAINS_NOTHING :
										   REMAINS_UNKNOWN;
}

void reconcile_close(struct reconcile *reconcile)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		free(reconcile->tenant[i]);
	*reconcile = (struct reconcile){ .summed = false };
}
