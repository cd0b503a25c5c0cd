/* SPDX-License-Identifier: MIT */
/* A row for each verb that makes an object: how the test makes, frees and accounts for it. */
#ifndef TESTS_PROCESS_TABLE_H
#define TESTS_PROCESS_TABLE_H

#include "fixture.h"
#include "harness.h"

struct row {
	const char *verb;
	const char *destroyer;
	void *(*make)(struct fixture *fixture);
	int (*unmake)(void *object);
	struct {
		enum kind kind;
		uint64_t amount;
	} cost[COST_KINDS];
	const char *rounded; /* the kind that comes back rounded up, or NULL */
};

extern const struct row table_rows[];
extern const unsigned table_count;

/* A scenario of makers that depend on each other: rules below a root table. */
void rules_below_root(const char *argument);

#endif
