/* SPDX-License-Identifier: MIT */
/* What is used now, and the most that was: the sums that are shown. */
#include "collector/grant_parts.h"

#include <string.h>

static void scope_clear_used(struct scope *scope)
{
	memset(scope->used, 0, sizeof(scope->used));
}

static void scope_note_peak(struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (scope->used[kind] > scope->peak[kind])
			scope->peak[kind] = scope->used[kind];
}

static void owner_each_scope(struct owner *owner, void (*apply)(struct scope *scope))
{
	apply(&owner->total);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		apply(&owner->device[device]);
}

static void books_each_scope(struct books *books, void (*apply)(struct scope *scope))
{
	owner_each_scope(&books->host, apply);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			owner_each_scope(&books->tenant[i]->all, apply);
}

static void member_measure(struct books *books, unsigned number)
{
	struct member *member = &books->member[number];

	memset(member->used, 0, sizeof(member->used));
	for (uint32_t lease = member->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			member->used[kind] += grants_used(books, lease, kind);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (member->used[kind] > member->peak[kind])
			member->peak[kind] = member->used[kind];
}

void grants_measure(struct books *books)
{
	bool adopted = false;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && grants_tolerate_unanswered(books, i))
			adopted |= grants_adopt(books, i);
	if (adopted)
		grants_enforce(books);
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN)
			member_measure(books, i);
	books_each_scope(books, scope_clear_used);
	for (unsigned lease = 0; lease < books->file->leases_high; lease++) {
		const struct lease_view *view = &books->view[lease];

		for (unsigned kind = 0; view->member != BOOKS_NOBODY && kind < KIND_COUNT; kind++) {
			struct owner *tenant = &books->tenant[view->tenant]->all;
			uint64_t used = grants_used(books, lease, kind);

			books->host.total.used[kind] += used;
			books->host.device[view->device].used[kind] += used;
			tenant->total.used[kind] += used;
			tenant->device[view->device].used[kind] += used;
		}
	}
	books_each_scope(books, scope_note_peak);
}
