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

#if defined(__SANITIZE_THREAD__)
#define BOOKS_TSAN 1
#elif defined(__has_feature)
#define BOOKS_TSAN __has_feature(thread_sanitizer)
#else
#define BOOKS_TSAN 0
#endif

extern struct ledger_limits books_limits; /* none at first */

/* Names the file after the test and this process, and removes it at exit(). */
void books_init(const char *test);
void books_remove(void);

/* Joins; says why when it cannot. */
bool books_join(struct ledger *ledger);

/* Leaves, and forgets the mapping, which ledger_close() does not. */
void books_leave(struct ledger *ledger);

/* Sums that differ from the slots of the taken seats, which must be of the living; says which. */
unsigned books_drift(struct layout_header *header);

unsigned books_seats_taken(const struct layout_header *header);

/* fork(), whose child ends with the test, however that ends; the test ends if it fails. */
pid_t books_fork(void);

#endif
