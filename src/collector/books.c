/* SPDX-License-Identifier: MIT */
/* Rows of members and leases, and the sums above them; see books.h. */
#include "collector/books_parts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The next row of a table that was never taken, with memory behind it. */
static int books_row_new(struct books *books, uint32_t *high, unsigned most, const void *rows,
			 size_t size)
{
	unsigned row = *high;
	int result = 0;

	if (row == most)
		return -ENOSPC;
	if (row % BOOKS_STEP == 0)
		result = statefile_reserve(books->fd, books->file, (const char *)rows + row * size,
					   BOOKS_STEP * size);
	if (result < 0)
		return result;
	BOOKS_STORE(*high, row + 1);
	return (int)row;
}

void books_member_clear(struct member *member)
{
	memset(member, 0, sizeof(*member));
	member->leases = member->next_of_pid = BOOKS_NOBODY;
	member->pidfd = member->lifeline = -1;
}

int books_member_row(struct books *books)
{
	struct book_file *file = books->file;
	int row;

	if (!books->free_members_count) {
		row = books_row_new(books, &file->members_high, BOOKS_MEMBERS, file->member,
				    sizeof(file->member[0]));
		if (row < 0)
			return row;
		books_member_clear(&books->member[row]);
		books->free_members[books->free_members_count++] = (uint32_t)row;
	}
	return (int)books->free_members[books->free_members_count - 1];
}

int books_lease_row(struct books *books)
{
	struct book_file *file = books->file;
	int row;

	if (!books->free_leases_count) {
		row = books_row_new(books, &file->leases_high, LEASES_MAX, file->lease,
				    sizeof(file->lease[0]));
		if (row < 0)
			return row;
		books->view[row].member = BOOKS_NOBODY;
		books->free_leases[books->free_leases_count++] = (uint32_t)row;
	}
	return (int)books->free_leases[books->free_leases_count - 1];
}

void books_lease_view(struct books *books, unsigned lease)
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct book_member *member = &books->file->member[row->member];
	const struct usage_page *usage = books->member[row->member].usage;
	struct lease_view *view = &books->view[lease];

	view->used = usage ? usage->row[row->usage_row].used : NULL;
	view->cap = member->flags & MEMBER_ASKS ?
			    NULL :
			    books->tenant[member->tenant]->table->row[lease].cap;
	view->member = row->member;
	view->tenant = member->tenant;
	view->device = row->device;
}

void books_lease_link(struct books *books, unsigned lease)
{
	struct member *member = &books->member[books->file->lease[lease].member];
	struct lease_view *view = &books->view[lease];
	struct tenant *tenant;

	books_lease_view(books, lease);
	view->next_of_member = member->leases;
	member->leases = lease;
	tenant = books->tenant[view->tenant];
	view->previous_of_tenant = BOOKS_NOBODY;
	view->next_of_tenant = tenant->leases;
	if (tenant->leases != BOOKS_NOBODY) {
		assert(books->view[tenant->leases].previous_of_tenant == BOOKS_NOBODY);
		books->view[tenant->leases].previous_of_tenant = lease;
	}
	tenant->leases = lease;
	books->leases_count++;
}

/* Out of the tenant's list; the member's ends with the member. */
static void books_lease_unlink(struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	uint32_t *before = view->previous_of_tenant != BOOKS_NOBODY ?
				   &books->view[view->previous_of_tenant].next_of_tenant :
				   &books->tenant[view->tenant]->leases;

	assert(*before == lease && books->leases_count);
	*before = view->next_of_tenant;
	if (view->next_of_tenant != BOOKS_NOBODY) {
		assert(books->view[view->next_of_tenant].previous_of_tenant == lease);
		books->view[view->next_of_tenant].previous_of_tenant = view->previous_of_tenant;
	}
	books->leases_count--;
}

int books_lease_take(struct books *books, unsigned lease, unsigned member, unsigned device,
		     unsigned usage_row)
{
	struct tenant *tenant = books->tenant[books->file->member[member].tenant];
	struct book_lease *row = &books->file->lease[lease];
	int result = statefile_reserve(tenant->table_fd, tenant->table, &tenant->table->row[lease],
				       sizeof(tenant->table->row[lease]));

	if (result < 0)
		return result;
	books->free_leases_count--;
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		BOOKS_STORE(tenant->table->row[lease].cap[kind], 0);
		BOOKS_STORE(row->granted[kind], 0);
		BOOKS_STORE(row->device_limit[kind], UNLIMITED);
	}
	BOOKS_STORE(tenant->table->row[lease].share.bytes, 0);
	BOOKS_STORE(tenant->table->row[lease].share.operations, 0);
	BOOKS_STORE(tenant->table->row[lease].share.floor, 0);
	BOOKS_STORE(row->member, member);
	BOOKS_STORE(row->device, device);
	BOOKS_STORE(row->usage_row, usage_row);
	__atomic_store_n(&row->state, BOOK_TAKEN, __ATOMIC_RELEASE);
	books_lease_link(books, lease);
	return 0;
}

unsigned books_lease_of(const struct books *books, unsigned member, unsigned usage_row)
{
	uint32_t lease = books->member[member].leases;

	while (lease != BOOKS_NOBODY && books->file->lease[lease].usage_row != usage_row)
		lease = books->view[lease].next_of_member;
	return lease;
}

/* Whether each sum is at least as large as every part of it. (Only assertions ask.) */
static __attribute__((unused)) bool books_sums_hold(const struct books *books, unsigned lease,
						    unsigned kind)
{
	const struct lease_view *view = &books->view[lease];
	const struct owner *host = &books->host, *tenant = &books->tenant[view->tenant]->all;
	wide of_lease = books->file->lease[lease].granted[kind];
	wide of_member = books->member[view->member].granted[kind];
	wide of_device = tenant->device[view->device].granted[kind];
	wide of_tenant = tenant->total.granted[kind];

	return of_member >= of_lease && of_device >= of_lease && of_tenant >= of_member &&
	       of_tenant >= of_device && host->device[view->device].granted[kind] >= of_device &&
	       host->total.granted[kind] >= host->device[view->device].granted[kind] &&
	       host->total.granted[kind] >= of_tenant;
}

void books_sums_add(struct books *books, unsigned lease, unsigned kind, wide change)
{
	const struct lease_view *view = &books->view[lease];
	struct tenant *tenant = books->tenant[view->tenant];

	books->host.total.granted[kind] += change;
	books->host.device[view->device].granted[kind] += change;
	tenant->all.total.granted[kind] += change;
	tenant->all.device[view->device].granted[kind] += change;
	books->member[view->member].granted[kind] += change;
	assert(books_sums_hold(books, lease, kind));
}

void books_grant(struct books *books, unsigned lease, unsigned kind, uint64_t granted)
{
	uint64_t *word = &books->file->lease[lease].granted[kind];
	uint64_t before = *word;

	__atomic_store_n(word, granted, __ATOMIC_RELEASE);
	books_sums_add(books, lease, kind, (wide)granted - before);
}

/* The cap is 0 before the books say that nothing is granted, and the row is free last. */
static void books_lease_free(struct books *books, unsigned lease)
{
	struct lease_view *view = &books->view[lease];

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		if (view->cap)
			__atomic_store_n(&view->cap[kind], 0, __ATOMIC_RELEASE);
		books_grant(books, lease, kind, 0);
	}
	__atomic_store_n(&books->file->lease[lease].state, BOOK_FREE, __ATOMIC_RELEASE);
	books_lease_unlink(books, lease);
	view->member = BOOKS_NOBODY;
	books->free_leases[books->free_leases_count++] = lease;
}

void books_lease_drop(struct books *books, unsigned lease)
{
	uint32_t *link = &books->member[books->view[lease].member].leases;

	while (*link != lease) {
		assert(*link != BOOKS_NOBODY);
		link = &books->view[*link].next_of_member;
	}
	*link = books->view[lease].next_of_member;
	books_lease_free(books, lease);
}

void books_member_free(struct books *books, unsigned member)
{
	struct book_member *row = &books->file->member[member];
	struct member *beside = &books->member[member];

	__atomic_store_n(&row->state, BOOK_DYING, __ATOMIC_RELEASE);
	while (beside->leases != BOOKS_NOBODY) {
		unsigned lease = beside->leases;

		beside->leases = books->view[lease].next_of_member;
		books_lease_free(books, lease);
	}
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		assert(!beside->granted[kind]);
	assert(books->members_count && books->tenant[row->tenant]->members);
	BOOKS_STORE(row->generation, row->generation + 1);
	__atomic_store_n(&row->state, BOOK_FREE, __ATOMIC_RELEASE);
	books->tenant[row->tenant]->members--;
	books->members_count--;
	books->free_members[books->free_members_count++] = member;
}
