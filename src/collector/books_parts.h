/* SPDX-License-Identifier: MIT */
/* What the parts of the books share (books.c, books_former.c, books_open.c,
 * books_names.c), and nobody else. */
#ifndef COLLECTOR_BOOKS_PARTS_H
#define COLLECTOR_BOOKS_PARTS_H

#include "collector/books.h"

/* ---- books_names.c */

enum { BOOKS_TABLE_NAME = 32 };

/* The name of the file of a tenant's lease table. */
void books_table_name(unsigned tenant, char ret_name[BOOKS_TABLE_NAME]);
/* What a table of the present version begins with, and what that file begins with; -errno. */
struct lease_signature books_table_signature(void);
int books_table_found(int directory, unsigned tenant, struct lease_signature *ret_signature);
/* Maps the table of a tenant that has a number. */
int books_tenant_open(struct books *books, unsigned number);
void books_tenant_close(struct books *books, unsigned number);
void books_owner_unlimited(struct owner *owner);

/* ---- books_open.c */

#define BOOKS_FILE "ledger"

/* What a ledger of the present version begins with. */
struct book_signature books_signature(void);

/* ---- books_former.c */

/* Makes a ledger of a former version one of the present version; any other stays as it is, and so
 * does the former one on failure. */
int books_former_take(struct books *books);

/* ---- books.c */

/* Rows get memory so many at a time. */
enum { BOOKS_STEP = 64 };

/* Puts a lease that is taken into the lists of its member and its tenant. */
void books_lease_link(struct books *books, unsigned lease);
/* Adds to every sum above a lease. The change may be "negative", modulo 2^128. */
void books_sums_add(struct books *books, unsigned lease, unsigned kind, wide change);

#endif
