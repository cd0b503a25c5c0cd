/* SPDX-License-Identifier: MIT */
/*
 * What a process tells about itself besides what it holds: counters of events,
 * and gauges of its queue pairs. They limit nothing. Wherever the numbers live,
 * they lie there as these structures.
 */
#ifndef LEDGER_TALLIES_H
#define LEDGER_TALLIES_H

#include <stdint.h>

#include "terms/kinds.h"
#include "ledger/ledger.h"

struct tallies {
	uint64_t refused[KIND_COUNT];	     /* the owner's threads, atomically */
	uint64_t tolerated[KIND_COUNT];	     /* likewise: over a limit in mode warn or audit */
	uint64_t counter[LEDGER_COUNTERS];   /* likewise */
	uint64_t cm_event[LEDGER_CM_EVENTS]; /* likewise */
};

struct gauges {
	uint64_t qp_type[QP_TYPES];   /* the owner's threads, atomically */
	uint64_t qp_state[QP_STATES]; /* likewise */
	uint64_t qp_port[QP_PORTS];   /* likewise */
};

#endif
