/* SPDX-License-Identifier: MIT */
/* Token buckets; see bucket.h. */
#include "terms/bucket.h"

#define SECOND_NS 1000000000u

static uint64_t bucket_clamp(unsigned __int128 parts)
{
	return parts > UINT64_MAX ? UINT64_MAX : (uint64_t)parts;
}

static uint64_t bucket_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t bucket_filled(const struct bucket_flow *flow, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > flow->since_ns ? now_ns - flow->since_ns : 0;

	return bucket_clamp(flow->filled + (unsigned __int128)flow->rate * passed_ns / SECOND_NS);
}

uint64_t bucket_position(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken)
{
	uint64_t filled = bucket_filled(flow, now_ns);
	uint64_t lost = filled > flow->burst ? filled - flow->burst : 0;

	return bucket_most(bucket_most(taken, flow->floor), lost);
}

uint64_t bucket_available(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken)
{
	uint64_t filled = bucket_filled(flow, now_ns);
	uint64_t position = bucket_position(flow, now_ns, taken);

	return filled > position ? filled - position : 0;
}

uint64_t bucket_wait_ns(const struct bucket_flow *flow, uint64_t now_ns, uint64_t taken,
			uint64_t cost)
{
	uint64_t filled = bucket_filled(flow, now_ns);
	unsigned __int128 goal = (unsigned __int128)bucket_position(flow, now_ns, taken) + cost;
	unsigned __int128 came_ns;

	if (goal <= filled)
		return 0;
	if (!flow->rate || cost > flow->burst)
		return BUCKET_NEVER;
	/* From the last change on, since the parts of that time are rounded down as a whole. */
	came_ns = ((goal - flow->filled) * SECOND_NS + flow->rate - 1) / flow->rate;
	came_ns += flow->since_ns;
	return came_ns > now_ns ? bucket_clamp(came_ns - now_ns) : 0;
}

bool bucket_take(const struct bucket_flow *flow, uint64_t now_ns, uint64_t *taken, uint64_t cost,
		 uint64_t *ret_position)
{
	uint64_t filled = bucket_filled(flow, now_ns);
	uint64_t before = __atomic_load_n(taken, __ATOMIC_RELAXED), position;

	do {
		position = bucket_position(flow, now_ns, before);
		if (position > filled || cost > filled - position)
			return false;
	} while (!__atomic_compare_exchange_n(taken, &before, position + cost, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	*ret_position = position;
	return true;
}

void bucket_change(struct bucket_flow *flow, uint64_t now_ns, uint64_t rate, uint64_t burst)
{
	uint64_t filled = bucket_filled(flow, now_ns);
	uint64_t least = burst < flow->burst ? burst : flow->burst;

	if (filled > least)
		flow->floor = bucket_most(flow->floor, filled - least);
	flow->filled = filled;
	flow->since_ns = bucket_most(flow->since_ns, now_ns);
	flow->rate = rate;
	flow->burst = burst;
}

void bucket_add(struct bucket_flow *flow, uint64_t parts)
{
	flow->filled = bucket_clamp((unsigned __int128)flow->filled + parts);
}
