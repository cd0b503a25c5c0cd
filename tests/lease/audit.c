/* SPDX-License-Identifier: MIT */
/* Files, rows and sums compared; see audit.h. */
#include "audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "step.h"

enum { FEW = 8 }; /* rows that are compared */

/* ---- the files */

static const void *file_map(const char *directory, const char *name, size_t size)
{
	char path[256];
	struct stat status;
	void *memory = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && (size_t)status.st_size == size)
		memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

void frozen_map(struct frozen *frozen, const char *directory)
{
	char name[32];

	if (!frozen->file)
		frozen->file = file_map(directory, "ledger", sizeof(*frozen->file));
	for (unsigned i = 0; frozen->file && i < FROZEN_TENANTS; i++) {
		if (frozen->table[i])
			continue;
		snprintf(name, sizeof(name), "tenant-%u", i);
		frozen->table[i] = file_map(directory, name, sizeof(*frozen->table[i]));
	}
}

void frozen_unmap(struct frozen *frozen)
{
	if (frozen->file)
		munmap((void *)frozen->file, sizeof(*frozen->file));
	for (unsigned i = 0; i < FROZEN_TENANTS; i++)
		if (frozen->table[i])
			munmap((void *)frozen->table[i], sizeof(*frozen->table[i]));
	memset(frozen, 0, sizeof(*frozen));
}

bool frozen_changed(const struct frozen *frozen)
{
	static struct memory_copy highs, devices, tenants, members, leases, tables[FROZEN_TENANTS];
	const struct book_file *file = frozen->file;
	bool changed = false;

#define CHANGED(copy, first, count)                                                                \
	memory_changed(copy, file ? (first) : NULL, file ? (count) * sizeof(*(first)) : 0)
	changed |= CHANGED(&highs, &file->members_high, 2);
	changed |= CHANGED(&devices, file->device, FEW);
	changed |= CHANGED(&tenants, file->tenant, FEW);
	changed |= CHANGED(&members, file->member, FEW);
	changed |= CHANGED(&leases, file->lease, FEW);
#undef CHANGED
	for (unsigned i = 0; i < FROZEN_TENANTS; i++)
		changed |= memory_changed(&tables[i], frozen->table[i],
					  frozen->table[i] ?
						  offsetof(struct lease_table, row[FEW]) :
						  0);
	return changed;
}

/* The tenant whose processes read the caps of a row, or none. */
static unsigned reader_of(const struct book_file *file, unsigned lease)
{
	const struct book_lease *row = &file->lease[lease];

	return row->state == BOOK_FREE ? BOOKS_NOBODY : file->member[row->member].tenant;
}

static unsigned row_faults(const struct frozen *frozen, unsigned lease)
{
	const struct book_lease *row = &frozen->file->lease[lease];
	unsigned reader = reader_of(frozen->file, lease), faults = 0;

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		faults += !CHECK(row->state != BOOK_FREE || row->granted[kind] == 0,
				 "lease %u is free, with %llu %s", lease,
				 (unsigned long long)row->granted[kind], kind_rows[kind].name);
		for (unsigned tenant = 0; tenant < FROZEN_TENANTS; tenant++) {
			uint64_t cap = frozen->table[tenant] ?
					       frozen->table[tenant]->row[lease].cap[kind] :
					       0;

			faults +=
				!CHECK(cap <= (tenant == reader ? row->granted[kind] : 0),
				       "lease %u of tenant %u: the cap of %s is %llu, %llu granted",
				       lease, tenant, kind_rows[kind].name, (unsigned long long)cap,
				       (unsigned long long)row->granted[kind]);
		}
	}
	return faults;
}

unsigned frozen_faults(const struct frozen *frozen)
{
	unsigned faults = 0;

	for (unsigned lease = 0; frozen->file && lease < frozen->file->leases_high; lease++)
		faults += row_faults(frozen, lease);
	return faults;
}

/* What the rows hold together; BOOKS_NOBODY: of any tenant, member, device. */
static wide rows_sum(const struct book_file *file, unsigned tenant, unsigned member,
		     unsigned device, unsigned kind)
{
	wide sum = 0;

	for (unsigned lease = 0; lease < file->leases_high; lease++) {
		const struct book_lease *row = &file->lease[lease];

		if (row->state == BOOK_TAKEN &&
		    (tenant == BOOKS_NOBODY || file->member[row->member].tenant == tenant) &&
		    (member == BOOKS_NOBODY || row->member == member) &&
		    (device == BOOKS_NOBODY || row->device == device))
			sum += row->granted[kind];
	}
	return sum;
}

wide frozen_granted(const struct frozen *frozen, unsigned tenant, unsigned device, unsigned kind)
{
	return rows_sum(frozen->file, tenant, BOOKS_NOBODY, device, kind);
}

unsigned frozen_excess(const struct frozen *frozen, unsigned member, const struct usage_page *page)
{
	const struct book_file *file = frozen->file;
	unsigned excess = 0;

	for (unsigned lease = 0; lease < file->leases_high; lease++) {
		const struct book_lease *row = &file->lease[lease];

		if (row->state != BOOK_TAKEN || row->member != member)
			continue;
		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
			uint64_t used = page->row[row->usage_row].used[kind];

			excess += !CHECK(used <= row->granted[kind],
					 "lease %u: %llu %s used, %llu granted", lease,
					 (unsigned long long)used, kind_rows[kind].name,
					 (unsigned long long)row->granted[kind]);
		}
	}
	return excess;
}

/* ---- the sums */

static bool same(const char *what, unsigned number, unsigned kind, wide said, wide sum)
{
	return CHECK(said == sum, "%s of %s %u: %lld, the rows hold %lld", kind_rows[kind].name,
		     what, number, (long long)said, (long long)sum);
}

/* The devices that nobody has named have no rows either, and share one comparison. */
static unsigned owner_drift(const struct books *books, const struct owner *owner, unsigned tenant,
			    unsigned kind)
{
	unsigned drift = !same("owner", tenant, kind, owner->total.granted[kind],
			       rows_sum(books->file, tenant, BOOKS_NOBODY, BOOKS_NOBODY, kind));

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		bool named = !device || books->file->device[device].name[0];
		wide said = owner->device[device].granted[kind];

		drift += !same("an owner on device", device, kind, said,
			       named ? rows_sum(books->file, tenant, BOOKS_NOBODY, device, kind) :
				       0);
	}
	return drift;
}

/* Every free row is in its list, once, and no other one. */
static unsigned list_faults(const char *what, const uint32_t *list, unsigned count, unsigned high,
			    unsigned taken, bool (*is_free)(const struct books *, unsigned),
			    const struct books *books)
{
	unsigned faults = !CHECK(count + taken == high, "%u free and %u taken of %u %s", count,
				 taken, high, what);
	bool *seen = calloc(high + 1, sizeof(*seen));

	if (!seen)
		return 1;
	for (unsigned i = 0; i < count; i++) {
		faults += !CHECK(list[i] < high && !seen[list[i]] && is_free(books, list[i]),
				 "row %u in the list of free %s", list[i], what);
		seen[list[i] < high ? list[i] : high] = true;
	}
	free(seen);
	return faults;
}

static bool lease_is_free(const struct books *books, unsigned row)
{
	return books->file->lease[row].state == BOOK_FREE &&
	       books->view[row].member == BOOKS_NOBODY;
}

static bool member_is_free(const struct books *books, unsigned row)
{
	return books->file->member[row].state == BOOK_FREE;
}

static unsigned members_drift(const struct books *books)
{
	unsigned drift = 0, of_tenant[BOOKS_TENANTS] = { 0 };

	for (unsigned member = 0; member < books->file->members_high; member++) {
		if (books->file->member[member].state == BOOK_FREE)
			continue;
		of_tenant[books->file->member[member].tenant]++;
		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
			drift += !same("member", member, kind, books->member[member].granted[kind],
				       rows_sum(books->file, BOOKS_NOBODY, member, BOOKS_NOBODY,
						kind));
	}
	for (unsigned tenant = 0; tenant < BOOKS_TENANTS; tenant++)
		drift += books->tenant[tenant] &&
			 !CHECK(books->tenant[tenant]->members == of_tenant[tenant],
				"tenant %u: %u members, %u rows", tenant,
				books->tenant[tenant]->members, of_tenant[tenant]);
	return drift;
}

unsigned audit_sums(const struct books *books)
{
	unsigned drift = members_drift(books);

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		drift += owner_drift(books, &books->host, BOOKS_NOBODY, kind);
		for (unsigned tenant = 0; tenant < BOOKS_TENANTS; tenant++)
			if (books->tenant[tenant])
				drift += owner_drift(books, &books->tenant[tenant]->all, tenant,
						     kind);
	}
	drift += list_faults("leases", books->free_leases, books->free_leases_count,
			     books->file->leases_high, books->leases_count, lease_is_free, books);
	drift += list_faults("members", books->free_members, books->free_members_count,
			     books->file->members_high, books->members_count, member_is_free,
			     books);
	return drift;
}

static unsigned owner_excess(const struct owner *owner)
{
	unsigned excess = 0;

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		excess += !CHECK(owner->total.granted[kind] <= owner->total.limit[kind],
				 "%llu %s granted of %llu",
				 (unsigned long long)owner->total.granted[kind],
				 kind_rows[kind].name,
				 (unsigned long long)owner->total.limit[kind]);
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			excess += !CHECK(owner->device[device].granted[kind] <=
						 owner->device[device].limit[kind],
					 "%llu %s granted on device %u of %llu",
					 (unsigned long long)owner->device[device].granted[kind],
					 kind_rows[kind].name, device,
					 (unsigned long long)owner->device[device].limit[kind]);
	}
	return excess;
}

unsigned audit_limits(const struct books *books)
{
	unsigned excess = owner_excess(&books->host);

	for (unsigned tenant = 0; tenant < BOOKS_TENANTS; tenant++)
		if (books->tenant[tenant])
			excess += owner_excess(&books->tenant[tenant]->all);
	return excess;
}

unsigned audit_nothing(const struct books *books)
{
	unsigned left = audit_sums(books);

	left += !CHECK(books->members_count == 0 && books->leases_count == 0,
		       "%u members, %u leases", books->members_count, books->leases_count);
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		left += !CHECK(books->host.total.granted[kind] == 0, "%llu %s granted to nobody",
			       (unsigned long long)books->host.total.granted[kind],
			       kind_rows[kind].name);
	for (unsigned tenant = 0; tenant < BOOKS_TENANTS; tenant++)
		for (unsigned lease = 0; lease < books->file->leases_high; lease++)
			for (unsigned kind = 0; books->tenant[tenant] && kind < KINDS_COUNTED; kind++)
				left += !CHECK(books->tenant[tenant]->table->row[lease].cap[kind] ==
						       0,
					       "tenant %u has a cap left in row %u", tenant, lease);
	return left;
}
