/* SPDX-License-Identifier: MIT */
/*
 * Kernel and books beside each other: what tenants and host have in the kernel, differences
 * between kernel and books that last, and whether a member that has ended left something behind.
 * Nothing here grants or takes back.
 */
#ifndef COLLECTOR_RECONCILE_H
#define COLLECTOR_RECONCILE_H

#include "collector/books.h"
#include "collector/kernel_usage.h"
#include "collector/members.h"

struct collector;

/* What the kernel has of the host or of a tenant. */
struct kernel_sums {
	uint64_t total[KIND_COUNT];
	uint64_t device[DEVICES_MAX][KIND_COUNT]; /* by the numbers of struct kernel_usage */
	int64_t drift[KIND_COUNT];		     /* differences that last, */
	unsigned drifting;			     /* and of how many processes */
	unsigned uncovered;			     /* processes that are not registered */
};

/* All zeros before the first look. */
struct reconcile {
	struct kernel_sums host;
	struct kernel_sums *tenant[BOOKS_TENANTS]; /* NULL: nothing */
	bool summed;				   /* there is something in the sums */
};

/* Every second: finds the monitor if there is one, counts, and compares with the books, of
 * which grants_measure has just made the sums. */
void reconcile_measure(struct collector *collector);

/* Before an answer: brings sums and uncovered processes up to date, if they are not. */
void reconcile_look(struct collector *collector);

void reconcile_close(struct reconcile *reconcile);

/* For struct members; the closure is the collector. */
enum member_remains reconcile_remains(void *closure, unsigned member, uint64_t since);

/* What the kernel has of a member, or NULL. */
const struct kernel_process *reconcile_member(const struct collector *collector, unsigned member);

/* The sums of a tenant, or of the host (-1). */
const struct kernel_sums *reconcile_sums(const struct collector *collector, int tenant);

#endif
