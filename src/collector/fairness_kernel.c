/* SPDX-License-Identifier: MIT */
/*
 * Fair shares of tenants whose limits the guard keeps: what it counts is held, also by processes
 * without the library, and what it refuses is wanted. Only in total: the guard knows no devices.
 */
#include "collector/fairness_parts.h"
#include "collector/guard_parts.h"

#include <string.h>

/* The tenant's number on the books; -1 if that is not known. Tenants may have changed since the
 * guard was last looked at. */
static int guarded_number(const struct collector *collector, const struct guards_tenant *tenant)
{
	const struct books *books = &collector->books;

	if (!tenant->slot || tenant->number < 0 || !books->tenant[tenant->number] ||
	    strcmp(books->file->tenant[tenant->number].name, tenant->name))
		return -1;
	return tenant->number;
}

static bool kind_is_guarded(const struct guards *guards, unsigned kind)
{
	return guards->guard.head && guards->guard.head->guarded >> kind & 1;
}

void kernel_counts_read(struct collector *collector, unsigned kind)
{
	const struct guards *guards = &collector->guards;
	struct fairness *fairness = &collector->fairness;

	memset(fairness->slot, 0, sizeof(fairness->slot));
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (collector->books.tenant[i])
			collector->books.tenant[i]->all.total.guarded[kind] = 0;
	if (!kind_is_guarded(guards, kind))
		return;
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next) {
		int number = guarded_number(collector, tenant);
		int64_t used;

		if (number < 0)
			continue;
		fairness->slot[number] = tenant->slot;
		fairness->enforced[number] = tenant->enforced;
		used = __atomic_load_n(&guards->guard.counts[tenant->slot].used[kind],
				       __ATOMIC_SEQ_CST);
		collector->books.tenant[number]->all.total.guarded[kind] =
			used > 0 ? (uint64_t)used : 0;
	}
}

uint64_t kernel_refusals(const struct collector *collector, unsigned tenant, unsigned kind)
{
	uint32_t slot = collector->fairness.slot[tenant];

	return slot ? __atomic_load_n(&collector->guards.guard.counts[slot].refused[kind],
				      __ATOMIC_RELAXED) :
		      0;
}

bool kernel_limit_write(struct collector *collector, unsigned tenant, unsigned kind)
{
	uint32_t slot = collector->fairness.slot[tenant];

	if (!slot || !collector->fairness.enforced[tenant])
		return false;
	monitor_guard_limit(&collector->guards.guard, slot, kind,
			    collector->books.tenant[tenant]->all.total.limit[kind]);
	return true;
}
