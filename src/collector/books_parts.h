/* SPDX-License-Identifier: MIT */
/* What the parts of the books share (books.c, books_open.c, books_names.c), and nobody else. */
#ifndef COLLECTOR_BOOKS_PARTS_H
#define COLLECTOR_BOOKS_PARTS_H

#include "collector/books.h"

/* ---- books_names.c */

enum { BOOKS_TABLE_NAME = 32 };

/* The name of the file of a tenant's lease table. */
void books_table_name(unsigned tenant, char ret_name[BOOKS_TABLE_NAME]);
/* Maps the table of a tenant that has a number. */
int books_tenant_open(struct books *books, unsigned number);
void books_tenant_close(struct books *books, unsigned number);
void books_owner_unlimited(struct owner *owner);

/* ---- books.c */

/* Puts a lease that is taken into the lists of its member and its tenant. */
void books_lease_link(struct books *books, unsigned lease);
/* Adds to every sum above a lease. The change may be "negative", modulo 2^128. */
void books_sums_add(struct books *books, unsigned lease, unsigned kind, wide change);

#endif
