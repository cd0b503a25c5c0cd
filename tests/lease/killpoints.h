/* SPDX-License-Identifier: MIT */
/*
 * What killpoints.c goes through: a table of operations for each of the two sides,
 * the collector's (daemonpoints.c) and its client's (clientpoints.c). Each file makes
 * the scene before a victim and examines what is left of it.
 */
#ifndef TESTS_LEASE_KILLPOINTS_H
#define TESTS_LEASE_KILLPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "step.h"

struct operation {
	const char *name;
	struct script script;
	unsigned points; /* about how many to try of a long one */
	unsigned flags;	 /* the side's own */
};

struct side {
	const char *name;
	const struct operation *operations;
	unsigned count;
	void (*begin)(void);
	bool (*scene)(const struct operation *operation); /* before each victim */
	uint64_t (*fingerprint)(void);			  /* or NULL; see trace_record */
	/* With the victim at its point: kills it, or somebody else, and looks. */
	bool (*examine)(const struct operation *operation, struct victim *victim, unsigned point);
	void (*end)(void);
};

extern const struct side daemon_side, client_side, outage_side;

#endif
