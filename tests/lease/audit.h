/* SPDX-License-Identifier: MIT */
/*
 * The collector's books under examination: the files as a killed collector left them,
 * before anybody repaired anything, and the sums in memory against the rows they are
 * sums of. Every function says by CHECK what it finds, and returns how much that was.
 */
#ifndef TESTS_LEASE_AUDIT_H
#define TESTS_LEASE_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/books.h"

enum { FROZEN_TENANTS = 4 }; /* tables that are looked at */

/* NULL where there is no such file yet. */
struct frozen {
	const struct book_file *file;
	const struct lease_table *table[FROZEN_TENANTS];
};

/* Maps what is there and not yet mapped. */
void frozen_map(struct frozen *frozen, const char *directory);
void frozen_unmap(struct frozen *frozen);

/* Whether the first few rows differ from those at the last call. */
bool frozen_changed(const struct frozen *frozen);

/* Caps above what is granted, and grants or caps that are of nobody. */
unsigned frozen_faults(const struct frozen *frozen);

/* What is granted together, of a tenant and on a device; BOOKS_NOBODY: of all of them. */
wide frozen_granted(const struct frozen *frozen, unsigned tenant, unsigned device, unsigned kind);

/* Leases of a member that it uses more of than was granted. */
unsigned frozen_excess(const struct frozen *frozen, unsigned member, const struct usage_page *page);

/* Sums and lists in memory that differ from the rows. */
unsigned audit_sums(const struct books *books);

/* Sums above the limits of the host and of the tenants. */
unsigned audit_limits(const struct books *books);

/* Rows that are not free, sums that are not 0, caps that are left. */
unsigned audit_nothing(const struct books *books);

#endif
