/* SPDX-License-Identifier: MIT */
/*
 * A rate divided over those who want parts of it: nobody gets more than he asks for while another
 * asks for more than he has (max-min fairness), and what nobody asks for is divided equally on top,
 * so that who begins to post has something at once. A pure function of numbers.
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
