/* SPDX-License-Identifier: MIT */
/* Shares of the books; see shares.h. */
#include "collector/shares.h"

#include <string.h>

enum { RESERVE_OF_TABLE = 64 }; /* one in so many rows is for root */

/* How many rows of a table others than root may still take. */
static unsigned share_rows_left(unsigned most, unsigned taken)
{
	unsigned open = most - most / RESERVE_OF_TABLE;

	return taken < open ? open - taken : 0;
}

/* A user, and a tenant, gets a further row only while it has fewer than are left: so there is
 * always something left for who comes next, whoever came before. */
const char *share_refuse_member(const struct books *books, uid_t uid, unsigned tenant)
{
	unsigned left = share_rows_left(BOOKS_MEMBERS, books->members_count), of_user = 0;

	if (uid == 0 || left > books->members_count)
		return NULL;
	for (unsigned i = 0; i < books->file->members_high; i++)
		of_user += books->file->member[i].state != BOOK_FREE &&
			   books->file->member[i].uid == uid;
	return of_user >= left			      ? "its user has used its share of the places for processes" :
	       books->tenant[tenant]->members >= left ? "its tenant has used its share of the places for processes" :
							NULL;
}

const char *share_refuse_lease(const struct books *books, uid_t uid, unsigned tenant)
{
	unsigned left = share_rows_left(LEASES_MAX, books->leases_count), of_user = 0,
		 of_tenant = 0;

	if (uid == 0 || left > books->leases_count)
		return NULL;
	for (unsigned i = 0; i < books->file->leases_high; i++) {
		const struct lease_view *view = &books->view[i];

		if (view->member == BOOKS_NOBODY)
			continue;
		of_user += books->file->member[view->member].uid == uid;
		of_tenant += view->tenant == tenant;
	}
	return of_user >= left	 ? "its user has used its share of the leases" :
	       of_tenant >= left ? "its tenant has used its share of the leases" :
				   NULL;
}

const char *share_refuse_tenant(const struct books *books, const char *pattern)
{
	unsigned left = 0, of_pattern = 0;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		left += !books->tenant[i];
		of_pattern += books->tenant[i] && !strcmp(books_tenant_pattern(books, i), pattern);
	}
	return of_pattern >= left ? "its pattern has its share of all tenants" : NULL;
}
