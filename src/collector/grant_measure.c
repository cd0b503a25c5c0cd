/* SPDX-License-Identifier: MIT */
/* What is used now, and the most that was: the sums that are shown. */
#include "collector/grant_parts.h"

#include <string.h>

#include "base/clock.h"

/* In seconds since 1970. */
static uint32_t time_now(void)
{
	return (uint32_t)(clock_ns(CLOCK_REALTIME) / CLOCK_SECOND_NS);
}

static void scope_clear_used(struct scope *scope, uint32_t now)
{
	memset(scope->used, 0, sizeof(scope->used));
}

static void scope_note_peak(struct scope *scope, uint32_t now)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		if (scope->used[kind] > scope->peak[kind]) {
			scope->peak[kind] = scope->used[kind];
			scope->peak_time[kind] = now;
		}
}

typedef void scope_function(struct scope *scope, uint32_t now);

static void owner_each_scope(const struct books *books, struct owner *owner, scope_function *apply,
			     uint32_t now)
{
	apply(&owner->total, now);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		if (!books_device_is_free(books, device))
			apply(&owner->device[device], now);
}

static void books_each_scope(struct books *books, scope_function *apply, uint32_t now)
{
	owner_each_scope(books, &books->host, apply, now);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			owner_each_scope(books, &books->tenant[i]->all, apply, now);
}

typedef void member_function(struct member *member);

static void member_clear_used(struct member *member)
{
	memset(member->used, 0, sizeof(member->used));
}

static void member_note_peak(struct member *member)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		if (member->used[kind] > member->peak[kind])
			member->peak[kind] = member->used[kind];
}

static void books_each_member(struct books *books, member_function *apply)
{
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN)
			apply(&books->member[i]);
}

/* Reads what is used on a lease once, so that all sums agree. */
static void lease_sum(struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	struct owner *tenant = &books->tenant[view->tenant]->all;

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		uint64_t used = grants_used(books, lease, kind);

		if (!used)
			continue;
		books->member[view->member].used[kind] += used;
		books->host.total.used[kind] += used;
		books->host.device[view->device].used[kind] += used;
		tenant->total.used[kind] += used;
		tenant->device[view->device].used[kind] += used;
	}
}

void grants_note_peak(struct books *books, const struct lease_view *view,
		      const struct ledger_refusal *refusal, bool tolerated)
{
	struct owner *tenant = &books->tenant[view->tenant]->all;
	struct scope *const scopes[SCOPES] = {
		[SCOPE_TENANT] = &tenant->total,
		[SCOPE_TENANT_DEVICE] = &tenant->device[view->device],
		[SCOPE_DEVICE] = &books->host.device[view->device],
		[SCOPE_HOST] = &books->host.total,
	};
	struct scope *scope = scopes[refusal->scope];
	/* What is tolerated is made: it is used beside the rest from now on. */
	uint64_t used = books_clamp((wide)refusal->used + (tolerated ? refusal->wanted : 0));
	uint64_t *member = &books->member[view->member].peak[refusal->kind];

	if (refusal->scope == SCOPE_PROCESS && used > *member)
		*member = used;
	if (!scope || used <= scope->peak[refusal->kind])
		return;
	scope->peak[refusal->kind] = used;
	scope->peak_time[refusal->kind] = time_now();
}

void grants_measure(struct books *books)
{
	uint32_t now = time_now();
	bool adopted = false;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && grants_tolerate_unanswered(books, i))
			adopted |= grants_adopt(books, i);
	if (adopted)
		grants_enforce(books);
	books_each_member(books, member_clear_used);
	books_each_scope(books, scope_clear_used, now);
	for (unsigned lease = 0; lease < books->file->leases_high; lease++)
		if (books->view[lease].member != BOOKS_NOBODY)
			lease_sum(books, lease);
	books_each_member(books, member_note_peak);
	books_each_scope(books, scope_note_peak, now);
}
