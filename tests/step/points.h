/* SPDX-License-Identifier: MIT */
/*
 * Tries operations at their points: a table of operations for each side of the product, which
 * makes the scene before a victim and examines what is left after it. Every operation is a case
 * of the driver.
 */
#ifndef TESTS_STEP_POINTS_H
#define TESTS_STEP_POINTS_H

#include <stdbool.h>

#include "step.h"

struct operation {
	const char *name;
	struct script script;
	unsigned samples; /* about how many points to try besides the notable ones */
	unsigned flags;	  /* the side's own */
};

struct side {
	const char *name;
	const struct operation *operations;
	unsigned count;
	void (*begin)(void); /* before the side's first operation */
	bool (*scene)(const struct operation *operation); /* before each victim */
	state_changed *changed;				  /* or NULL; see trace_record */
	/* Examines the reference run, whose victim was killed after its end; or NULL. */
	bool (*reference)(const struct operation *operation);
	/* With the victim at its point: kills it, or another process, and examines what is left. */
	bool (*examine)(const struct operation *operation, struct victim *victim, unsigned point);
	void (*end)(void);
};

/*
 * Runs the operations of one side. RDMA_INTERCEPT_TEST_POINTS in the environment replaces the
 * number of samples of every operation: a number, or "every" for all points.
 */
void points_run(const struct side *side);

/* The total of all sides so far. */
void points_print(void);

#endif
