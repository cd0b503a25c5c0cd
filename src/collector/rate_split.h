/* SPDX-License-Identifier: MIT */
/*
 * A tenant's rate and burst, divided among its processes by what they ask for. A pure function of
 * numbers: it knows no books, no memory of others and no time.
 */
#ifndef COLLECTOR_RATE_SPLIT_H
#define COLLECTOR_RATE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

/* Rates are parts per second, amounts parts: RATE_PART of them are one call. */
struct rate_claim {
	uint64_t demand; /* what the process asks for; more than the whole rate counts as that */
	bool active;	 /* it has asked lately: goes before those that have not */
	bool chosen;	 /* set by rate_split: it may call at all until the next division */
	uint64_t rate;	 /* set by rate_split */
	uint64_t burst;	 /* likewise: whole calls, at least one where rate is not 0 */
};

/*
 * The sums of what is set are at most RATE and BURST. Rates are max-min fair: nobody gets more than
 * it asks for while another lacks some, and what nobody asks for is divided equally. A process can
 * call only with a whole call in its bucket, so where the burst has fewer of them than there are
 * processes, they take turns: TURN goes up by one with each division.
 */
void rate_split(struct rate_claim *claims, unsigned count, uint64_t rate, uint64_t burst,
		unsigned turn);

#endif
