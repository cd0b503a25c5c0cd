/* SPDX-License-Identifier: MIT */
/* What clients of the storms hold: QPs or MRs of random sizes, on a random device. */
#ifndef TESTS_HOLDING_H
#define TESTS_HOLDING_H

#include <stdlib.h>

#include "terms/kinds.h"

struct holding {
	unsigned device;
	struct cost cost;
};

static inline unsigned below(unsigned *seed, unsigned limit)
{
	return (unsigned)rand_r(seed) % limit;
}

static inline struct holding holding_invent(unsigned *seed, unsigned devices)
{
	struct holding holding = { .device = below(seed, devices) };

	if (below(seed, 2))
		holding.cost = COST3(qp, 1 + below(seed, 3), send_wr, below(seed, 300), recv_wr,
				     below(seed, 300));
	else
		holding.cost = COST2(mr, 1, mr_bytes, 4096u * (1 + below(seed, 64)));
	return holding;
}

#endif
