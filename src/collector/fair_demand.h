/* SPDX-License-Identifier: MIT */
/*
 * What a tenant wants of a kind: what it holds, and what it asked for lately. It remembers for a
 * while, so that a moment of idleness does not lower a share. Knows no clock: the caller says the
 * time. A structure of zeros is a tenant that never asked; make it so when its last process ends.
 */
#ifndef COLLECTOR_FAIR_DEMAND_H
#define COLLECTOR_FAIR_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

/* What was held or asked for counts for one to two such periods. */
#define FAIR_PERIOD_NS 250000000u
/* A refused request counts so long, or until one is met: a program may ask again only once in some
 * seconds, and must find its room then. */
#define FAIR_REFUSED_NS 5000000000u

struct fair_demand {
	uint64_t period;       /* number of the present period: time / FAIR_PERIOD_NS */
	uint64_t peak, before; /* the most that was wanted in it, and in the one before */
	uint64_t refused;      /* amount of the last refused request; 0: none */
	uint64_t refused_ns;
};

/*
 * A tenant that held USED asked for ASKED more, and got it (MET) or was refused. Call it with 0
 * asked, met, before each computation, so that what is held is remembered, too.
 *
 * A tenant that is refused is taken to want as much again as it holds. Programs ask for one object
 * after another; a share that followed such a request would grow by one object per computation.
 */
void fair_demand_note(struct fair_demand *demand, uint64_t now_ns, uint64_t used, uint64_t asked,
		      bool met);

/* Of a tenant that holds USED now; never less than that. */
uint64_t fair_demand_now(const struct fair_demand *demand, uint64_t now_ns, uint64_t used);

#endif
