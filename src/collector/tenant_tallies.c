/* SPDX-License-Identifier: MIT */
/* Counters and gauges of tenants; see tenant_tallies.h. */
#include "collector/tenant_tallies.h"

/* The members of each tenant; the collector has one thread. */
static uint32_t first_of_tenant[BOOKS_TENANTS], next_of_member[BOOKS_MEMBERS];

/* NULL while the member's page is not known. */
static const struct gauges *lease_gauges(const struct books *books, uint32_t lease)
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct usage_page *usage = books->member[row->member].usage;

	return usage && row->usage_row < DEVICES_MAX ? &usage->row[row->usage_row].gauges : NULL;
}

void tenant_tallies_keep(struct books *books, unsigned member)
{
	const struct member *beside = &books->member[member];
	struct tenant *tenant = books->tenant[books->file->member[member].tenant];

	if (!beside->usage)
		return;
	tenant->any_ended = true;
	tallies_add(&tenant->ended, &beside->usage->tallies);
	for (uint32_t lease = beside->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		const struct gauges *gauges = lease_gauges(books, lease);

		if (gauges)
			posted_add(&tenant->ended_posted, &gauges->posted);
	}
	tenant->ended_posted.waiting = 0;
}

void tenant_tallies_chain(const struct books *books)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		first_of_tenant[i] = BOOKS_NOBODY;
	for (unsigned i = books->file->members_high; i-- > 0;) {
		const struct book_member *member = &books->file->member[i];

		if (member->state != BOOK_TAKEN)
			continue;
		next_of_member[i] = first_of_tenant[member->tenant];
		first_of_tenant[member->tenant] = i;
	}
}

bool tenant_tallies_sum(const struct books *books, unsigned tenant, struct tallies *ret_tallies,
			struct gauges *ret_gauges)
{
	*ret_tallies = books->tenant[tenant]->ended;
	*ret_gauges = (struct gauges){ .posted = books->tenant[tenant]->ended_posted };
	for (uint32_t i = first_of_tenant[tenant]; i != BOOKS_NOBODY; i = next_of_member[i])
		if (books->member[i].usage)
			tallies_add(ret_tallies, &books->member[i].usage->tallies);
	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant) {
		const struct gauges *gauges = lease_gauges(books, lease);

		if (gauges)
			gauges_add(ret_gauges, gauges);
	}
	return books->tenant[tenant]->any_ended || first_of_tenant[tenant] != BOOKS_NOBODY;
}

bool tenant_gauges_sum(const struct books *books, unsigned tenant, unsigned device,
		       struct gauges *ret_gauges)
{
	bool any = false;

	*ret_gauges = (struct gauges){ 0 };
	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant) {
		const struct gauges *gauges = books->view[lease].device == device ?
						      lease_gauges(books, lease) :
						      NULL;

		if (gauges)
			gauges_add(ret_gauges, gauges);
		any |= gauges != NULL;
	}
	return any;
}
