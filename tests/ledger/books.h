/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the ledger share: a shared file of their own, and the
 * comparison of its sums with the slots they are sums of.
 */
#ifndef TESTS_LEDGER_BOOKS_H
#define TESTS_LEDGER_BOOKS_H

#include <stdbool.h>

#include "ledger/layout.h"
#include "ledger/ledger.h"

extern struct ledger_limits books_limits; /* no limits at first */

/* Names the file after the test and this process, and removes it at exit(). */
void books_init(const char *test);
void books_remove(void);
const char *books_path(void);

/* Joins; a failure is a failed check. */
bool books_join(struct ledger *ledger);

/* Leaves, and forgets the mapping, which ledger_close() does not. */
void books_leave(struct ledger *ledger);

/* Sums that differ from the slots of the taken seats, which must be of the living; says which. */
unsigned books_drift(struct layout_header *header);

unsigned books_seats_taken(const struct layout_header *header);

#endif
