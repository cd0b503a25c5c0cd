/* SPDX-License-Identifier: MIT */
/*
 * Taking credit back that members were granted and do not use: caps are closed, what is used is
 * read, the rest is taken, and caps are opened again.
 */
#include "collector/grant_parts.h"

static bool scope_is_of_device(enum limit_scope scope)
{
	return scope == SCOPE_PROCESS_DEVICE || scope == SCOPE_TENANT_DEVICE ||
	       scope == SCOPE_DEVICE;
}

/* The next lease of the scope's owner, or its first after BOOKS_NOBODY: how many leases others
 * have must not make a sweep longer. */
static uint32_t sweep_owner_next(const struct books *books, const struct sweep *range,
				 uint32_t lease)
{
	bool first = lease == BOOKS_NOBODY;

	if (range->scope <= SCOPE_PROCESS_DEVICE)
		return first ? books->member[range->member].leases :
			       books->view[lease].next_of_member;
	if (range->scope <= SCOPE_TENANT_DEVICE)
		return first ? books->tenant[range->tenant]->leases :
			       books->view[lease].next_of_tenant;
	lease = first ? 0 : lease + 1;
	return lease < books->file->leases_high ? lease : BOOKS_NOBODY;
}

static bool sweep_contains(const struct sweep *range, const struct lease_view *view)
{
	return view->member != BOOKS_NOBODY && view->used &&
	       (!scope_is_of_device(range->scope) || view->device == range->device);
}

static uint32_t sweep_next(const struct books *books, const struct sweep *range, uint32_t lease)
{
	do
		lease = sweep_owner_next(books, range, lease);
	while (lease != BOOKS_NOBODY && !sweep_contains(range, &books->view[lease]));
	return lease;
}

#define EACH_SWEPT(books, range, lease)                                                            \
	for (uint32_t lease = sweep_next(books, range, BOOKS_NOBODY); lease != BOOKS_NOBODY;       \
	     lease = sweep_next(books, range, lease))

uint64_t grants_used(const struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];
	uint64_t granted = books->file->lease[lease].granted[kind];

	/* A member's word counts only up to what it was granted. */
	return view->used ? smaller(__atomic_load_n(&view->used[kind], __ATOMIC_SEQ_CST), granted) :
			    granted;
}

/* What the member was given in answer to a question and is about to take: it is as good as
 * used. Its next question has another number. */
static uint64_t lease_promised(const struct books *books, unsigned lease, unsigned kind)
{
	const struct member *member = &books->member[books->view[lease].member];
	const struct promise *promise = &member->promise;

	if (!promise->question || promise->lease != lease ||
	    __atomic_load_n(&member->usage->question, __ATOMIC_SEQ_CST) != promise->question)
		return 0;
	for (unsigned i = 0; i < promise->count; i++)
		if (promise->kind[i] == kind)
			return promise->total[i];
	return 0;
}

/* First half of taking back: from now on nothing new is taken but what was promised; with hold
 * not even that. */
static void lease_cap_close(struct books *books, unsigned lease, unsigned kind, bool hold)
{
	struct lease_view *view = &books->view[lease];
	uint64_t cap = LOAD(view->cap[kind]);
	uint64_t target = cap && !hold ? smaller(cap, lease_promised(books, lease, kind)) : 0;

	/* In one order with the reading of `used` below, and with what the member does: it
	 * raises `used` and then reads this. One of the two sees the other. */
	if (cap != target)
		__atomic_store_n(&view->cap[kind], target, __ATOMIC_SEQ_CST);
}

/* Whether a cap was left open for a promise that is over now: the member may have taken, given
 * back and taken again. What is over stays so, whatever the member writes. */
static bool lease_promise_is_over(struct books *books, unsigned lease, unsigned kind)
{
	if (!LOAD(books->view[lease].cap[kind]) || lease_promised(books, lease, kind))
		return false;
	books->member[books->view[lease].member].promise.question = 0;
	return true;
}

/* Second half: what is used now, or could still be, stays granted. What was promised is looked
 * at before `used`: the member adds to that before it says that it has what it was given. */
void lease_grant_settle(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];
	uint64_t cap = LOAD(books->view[lease].cap[kind]);
	uint64_t stays = larger(cap, smaller(lease_promised(books, lease, kind), granted));

	stays = larger(stays, grants_used(books, lease, kind));
	if (stays < granted)
		books_grant(books, lease, kind, stays);
}

void lease_cap_raise(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];

	if (LOAD(books->view[lease].cap[kind]) == granted || levels_exceeded(books, lease, kind))
		return;
	/* Release: the books were written first. */
	__atomic_store_n(&books->view[lease].cap[kind], granted, __ATOMIC_RELEASE);
}

/*
 * Takes idle credit of a kind back from all leases in the range. From the end of the first loop
 * until the caps are raised, nobody takes anything without asking, and asking is waiting for
 * us; or it is what was promised, and counts as taken. So what is read in the second loop was
 * held, or was just being taken, at the one moment between them: a unit that goes from one to
 * another is not seen twice. If a promise was over meanwhile, there was no such moment: again,
 * which happens once for each promise at most. While a limit above is exceeded the caps stay
 * closed; the sweep that closes them holds, that is, it keeps nothing open for a promise.
 */
void sweep_range(struct books *books, const struct sweep *range, unsigned kind, bool hold)
{
	bool again;

	do {
		EACH_SWEPT(books, range, lease)
		lease_cap_close(books, lease, kind, hold);
		again = false;
		EACH_SWEPT(books, range, lease)
		{
			again |= lease_promise_is_over(books, lease, kind);
			lease_grant_settle(books, lease, kind);
		}
	} while (again);
	EACH_SWEPT(books, range, lease)
	lease_cap_raise(books, lease, kind);
}

void grants_sweep_all(struct books *books, unsigned kind)
{
	grants_sweep_place(books, 0, kind);
}

void grants_sweep_place(struct books *books, unsigned place, unsigned kind)
{
	struct sweep range = { .scope = place ? SCOPE_DEVICE : SCOPE_HOST, .device = place };

	sweep_range(books, &range, kind, false);
}

void grants_sweep_tenant(struct books *books, unsigned tenant, unsigned place, unsigned kind)
{
	struct sweep range = { place ? SCOPE_TENANT_DEVICE : SCOPE_TENANT, tenant, 0, place };

	sweep_range(books, &range, kind, false);
}
