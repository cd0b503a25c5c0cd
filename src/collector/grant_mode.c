/* SPDX-License-Identifier: MIT */
/*
 * Modes: where limits are not enforced, members make what no answer was had for, and the books
 * must learn of it before limits are enforced again.
 */
#include "collector/grant_parts.h"

/*
 * Where limits are tolerated, members also make what no answer was had for: it is on their pages
 * and not on the books. There is only their word for it, but they could as well have asked and
 * been given it. Returns whether there was any.
 */
static bool lease_adopt(struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	bool any = false;

	for (unsigned kind = 0; view->used && kind < KINDS_COUNTED; kind++) {
		uint64_t used = smaller(__atomic_load_n(&view->used[kind], __ATOMIC_SEQ_CST),
					BOOKS_GRANT_MOST);

		if (used <= books->file->lease[lease].granted[kind])
			continue;
		books_grant(books, lease, kind, used);
		any = true;
	}
	return any;
}

bool grants_adopt(struct books *books, unsigned tenant)
{
	bool any = false;

	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant)
		any |= lease_adopt(books, lease);
	return any;
}

/* Whether members make what they get no answer for. They are members of many programs, whose own
 * modes have no part in it. */
static bool mode_tolerates_unanswered(uint32_t mode)
{
	return verdict_at_limit(LIMIT_UNKNOWN, mode, MODE_ENFORCE) != VERDICT_REFUSED;
}

bool grants_tolerate_unanswered(const struct books *books, unsigned tenant)
{
	return mode_tolerates_unanswered(books->tenant[tenant]->table->mode);
}

void grants_mode(struct books *books, unsigned tenant, enum mode mode)
{
	struct lease_table *table = books->tenant[tenant]->table;
	uint32_t *tolerant = &books->file->tolerant[tenant];

	if (mode_tolerates_unanswered(mode))
		__atomic_store_n(tolerant, 1, __ATOMIC_RELEASE);
	/* In one order with what the members do that got no answer: they add to `used` and look
	 * at the mode again. */
	__atomic_store_n(&table->mode, mode, __ATOMIC_SEQ_CST);
	if (*tolerant)
		grants_adopt(books, tenant);
	/* Last, so that a collector that is started again does the rest. */
	if (!mode_tolerates_unanswered(mode) && books->attached)
		__atomic_store_n(tolerant, 0, __ATOMIC_RELEASE);
}

void grants_attached(struct books *books)
{
	books->attached = true;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			grants_mode(books, i, books->tenant[i]->table->mode);
}

void grants_settle(struct books *books, unsigned lease)
{
	if (books->file->tolerant[books->view[lease].tenant] && !books->attached)
		lease_adopt(books, lease);
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		struct lease_view *view = &books->view[lease];

		if (!view->used || LOAD(view->cap[kind]) == books->file->lease[lease].granted[kind])
			continue;
		lease_grant_settle(books, lease, kind);
		lease_cap_raise(books, lease, kind);
	}
}
