/* SPDX-License-Identifier: MIT */
/*
 * A token bucket that carries debt: what was spent is taken at its full size, however much that is,
 * and who comes next waits until the debt is paid. So nothing is ever split, and the average is the
 * rate. A pure function of numbers and times: it waits for nothing and knows no clock.
 */
#ifndef TERMS_PACE_BUCKET_H
#define TERMS_PACE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct pace_bucket {
	uint64_t rate;	 /* a second; 0: no limit */
	uint64_t burst;	 /* the most that gathers while nothing is spent */
	int64_t balance; /* negative: debt */
	uint64_t at_ns;	 /* up to this time the balance is complete */
};

/* Another rate from now on; the balance is cut to the burst. A bucket of zeros begins full. */
void pace_bucket_set(struct pace_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns);

/* Adds what came since. waited: somebody was waiting all the time, so that what came meanwhile is
 * his even above the burst (up to 200 ms of it), or a sleep that lasts too long would be lost. */
void pace_bucket_fill(struct pace_bucket *bucket, uint64_t now_ns, bool waited);

/* Takes, or with a negative amount gives back. */
void pace_bucket_spend(struct pace_bucket *bucket, int64_t amount);

/* How long until there is no debt; 0: there is none. */
uint64_t pace_bucket_wait_ns(const struct pace_bucket *bucket);

/* How much may be spent before the next look: no more than there is, nor than comes in 50 ms. */
uint64_t pace_bucket_allowance(const struct pace_bucket *bucket, uint64_t most);

#endif
