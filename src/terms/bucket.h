/* SPDX-License-Identifier: MIT */
/*
 * Token buckets as arithmetic: no clock, no lock, no memory of its own. How a bucket fills (struct
 * bucket_flow) is written by one side and changes seldom. How much was taken out is one word of the
 * other side. Both count from the beginning of the bucket, so that the flow may be changed, even
 * moved to another bucket, without a look at who is taking: in any time t no more than burst +
 * rate * t goes out, whatever changes meanwhile. Units ("parts") are the caller's choice.
 */
#ifndef TERMS_BUCKET_H
#define TERMS_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_NEVER UINT64_MAX

struct bucket_flow {
	uint64_t since_ns; /* the time of the last change */
	uint64_t filled;   /* parts that had come in by then, ever */
	uint64_t floor;	   /* of these, the first so many are gone: taken, or lost at a full bucket */
	uint64_t rate;	   /* parts that come in each second */
	uint64_t burst;	   /* the most that lie in the bucket */
};

/* Parts that have come in by that time. */
uint64_t bucket_filled(const struct bucket_flow *flow, uint64_t now_ns);

/* The number of the next part that can be taken: those before it are taken or lost. */
uint64_t bucket_position(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken);

/* What lies in the bucket. */
uint64_t bucket_available(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken);

/* How long until `cost` lies there, if nobody takes any: 0 now, BUCKET_NEVER with this flow never. */
uint64_t bucket_wait_ns(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken,
			uint64_t cost);

/* Takes `cost`, and says from which position on; false, with nothing taken, where less is there.
 * Any number of threads may. */
bool bucket_take(const struct bucket_flow *flow, uint64_t now_ns, uint64_t *taken, uint64_t cost,
		 uint64_t *ret_position);

/* A new rate and burst from now on. What does not fit into the new burst is lost. */
void bucket_change(struct bucket_flow *flow, uint64_t now_ns, uint64_t rate, uint64_t burst);

/* Parts from elsewhere; more than the burst cannot lie in the bucket. */
void bucket_add(struct bucket_flow *flow, uint64_t parts);

#endif
