/* SPDX-License-Identifier: MIT */
/*
 * A rate divided over processes by demand: no process gets more than it asks for while another
 * asks for more than it has (max-min fairness), and the unclaimed rest is divided equally on
 * top, so that a process that begins to post has a part at once. A pure function of numbers.
 */
#ifndef COLLECTOR_PACE_SPLIT_H
#define COLLECTOR_PACE_SPLIT_H

#include <stdint.h>

struct pace_part {
	uint64_t demand; /* UINT64_MAX: as much as there is */
	uint64_t share;	 /* the result, at least 1 */
	uint32_t who;	 /* for the caller */
};

/* The shares add up to at most the rate and one for each part. */
void pace_split(uint64_t rate, struct pace_part *parts, unsigned count);

#endif
