/* SPDX-License-Identifier: MIT */
/*
 * Fair shares of tenants whose limits the guard keeps: what it counts is held, also by processes
 * without the library, and what it refuses is wanted. Only in total: the guard knows no devices.
 * The guard asks no collector. So the limit of the host holds because the guard has a limit for
 * all its tenants together, and that falls before the others are granted more (decision 129).
 */
#include "collector/fairness_parts.h"
#include "collector/guard_parts.h"

#include <string.h>

enum { CLAIM_PART = 16 };

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

/* What the guard has counted in a slot. */
static uint64_t slot_count(const struct guards *guards, uint32_t slot, unsigned kind)
{
	int64_t used = __atomic_load_n(&guards->guard.counts[slot].used[kind], __ATOMIC_SEQ_CST);

	return used > 0 ? (uint64_t)used : 0;
}

/* What the guard's tenants have, or may have without a question. The kernel's programs read the
 * limit again after they counted, so that none of them counts more once it has fallen. */
static void guard_room_read(struct collector *collector, unsigned kind)
{
	const struct guards *guards = &collector->guards;
	uint64_t limit = __atomic_load_n(&guards->guard.limits[GUARD_HOST].limit[kind],
					 __ATOMIC_SEQ_CST);
	uint64_t used = slot_count(guards, GUARD_HOST, kind);

	collector->books.guard_room[kind] = used > limit ? used : limit;
}

/* The count is read after the limit was written: both are sequentially consistent. */
static void guard_room_set(struct collector *collector, unsigned kind, uint64_t limit)
{
	monitor_guard_limit(&collector->guards.guard, GUARD_HOST, kind, limit);
	guard_room_read(collector, kind);
}

/* It has no epoch yet if it is just being switched on, or taken over from an earlier guard. To
 * COLLECTOR_TENANT belongs whom no line names. */
static enum guarding tenant_guarding(const struct guards *guards, const struct guards_tenant *tenant)
{
	const struct guard_head *head = guards->guard.head;

	if (tenant->other || !strcmp(tenant->name, COLLECTOR_TENANT) ||
	    !__atomic_load_n(&head->armed, __ATOMIC_ACQUIRE))
		return GUARDING_PART;
	if (!tenant->on || !tenant->enforced || !tenant->since ||
	    __atomic_load_n(&head->counted, __ATOMIC_ACQUIRE) < tenant->since)
		return GUARDING_COUNTS;
	return GUARDING_HOLDS;
}

void kernel_counts_read(struct collector *collector, unsigned kind)
{
	const struct guards *guards = &collector->guards;
	struct fairness *fairness = &collector->fairness;
	struct books *books = &collector->books;
	bool any = false;

	memset(fairness->slot, 0, sizeof(fairness->slot));
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i]) {
			books->tenant[i]->all.total.guarding[kind] = GUARDING_NOTHING;
			books->tenant[i]->all.total.guarded[kind] = 0;
		}
	books->guard_room[kind] = 0;
	if (!kind_is_guarded(guards, kind))
		return;
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next) {
		int number = guarded_number(collector, tenant);
		struct scope *scope;

		if (number < 0)
			continue;
		scope = &books->tenant[number]->all.total;
		fairness->slot[number] = tenant->slot;
		fairness->enforced[number] = tenant->enforced;
		scope->guarding[kind] = tenant_guarding(guards, tenant);
		scope->guarded[kind] = slot_count(guards, tenant->slot, kind);
		any = true;
	}
	if (any)
		guard_room_read(collector, kind);
}

uint64_t kernel_refusals(const struct collector *collector, unsigned tenant, unsigned kind)
{
	uint32_t slot = collector->fairness.slot[tenant];

	return slot ? __atomic_load_n(&collector->guards.guard.counts[slot].refused[kind],
				      __ATOMIC_RELAXED) :
		      0;
}

uint64_t kernel_host_refusals(const struct collector *collector, unsigned kind)
{
	const struct guards *guards = &collector->guards;

	return guards->guard.head ? __atomic_load_n(&guards->guard.counts[GUARD_HOST].refused[kind],
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

void kernel_room_give(struct collector *collector, unsigned kind)
{
	const struct books *books = &collector->books;
	uint64_t capacity = books->host.total.limit[kind];
	wide outside = 0;

	if (!collector->guards.guard.head)
		return;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct scope *scope = books->tenant[i] ? &books->tenant[i]->all.total : NULL;

		if (!scope)
			continue;
		outside += books_outside_guard(scope, kind);
		if (scope->guarding[kind] != GUARDING_HOLDS)
			outside += books_unused_guarantee(scope, kind);
	}
	guard_room_set(collector, kind,
		       capacity == UNLIMITED ? UNLIMITED :
		       outside < capacity    ? capacity - (uint64_t)outside :
					       0);
}

void kernel_room_claim(struct collector *collector, unsigned kind, uint64_t more)
{
	const struct books *books = &collector->books;
	uint64_t room = books->guard_room[kind];
	wide needed = 0;
	uint64_t spare;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct scope *scope = books->tenant[i] ? &books->tenant[i]->all.total : NULL;

		if (!scope)
			continue;
		needed += books_inside_guard(scope, kind);
		if (scope->guarding[kind] == GUARDING_HOLDS)
			needed += books_unused_guarantee(scope, kind);
	}
	if (needed >= room)
		return;
	spare = room - (uint64_t)needed;
	/* A part of the rest as well, so that the next requests need no claim. */
	guard_room_set(collector, kind,
		       more < spare ? room - more - (spare - more) / CLAIM_PART : (uint64_t)needed);
}
