/* SPDX-License-Identifier: MIT */
/*
 * Lasting differences between the kernel's counts and the books of a member. The caller
 * gives both counts; this file decides whether a difference counts as drift.
 */
#ifndef COLLECTOR_DRIFT_H
#define COLLECTOR_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "terms/kinds.h"

struct collector;
struct kernel_process;

/* What is known of a member. */
struct drift_state {
	uint32_t generation; /* of the member's row: whose all this is */
	bool drifting;
	bool told;
	uint8_t samples[KIND_COUNT]; /* in a row, with a difference of one sign */
	int64_t last[KIND_COUNT];    /* kernel less books */
	int64_t drift[KIND_COUNT];
	/* At the last sample, to see whether anything moves: */
	uint64_t used[KIND_COUNT];
	uint64_t moves[KIND_COUNT];
};

/* All zeros: nothing was compared yet. */
struct drift {
	struct drift_state *member; /* BOOKS_MEMBERS of them, or NULL */
	unsigned generation;	    /* of the counts in the kernel that they were compared with */
};

/* Once in a sample, for each member and what the kernel has of it (NULL: nothing). Tells what is
 * new in an event. */
void drift_compare(struct collector *collector, unsigned member,
		   const struct kernel_process *process);

void drift_close(struct drift *drift);

/* The differences of a member that last, or NULL if there are none. */
const int64_t *drift_of(const struct collector *collector, unsigned member);

#endif
