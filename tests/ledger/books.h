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

extern struct ledger_limits books_limits; /* none at first */

/* Names the file after the test and this process, and removes it at exit(). */
void books_init(const char *test);
void books_remove(void);

/* Joins; says why when it cannot. */
bool books_join(struct ledger *ledger);

/* Leaves, and forgets the mapping, which ledger_close() does not. */
void books_leave(struct ledger *ledger);

/* Sums that differ from the slots of the seats that are taken; says which. */
unsigned books_drift(struct layout_header *header);

unsigned books_seats_taken(const struct layout_header *header);

/* In a new process: end with the test, however that ends. */
void books_die_with(pid_t parent);

#endif
