/* SPDX-License-Identifier: MIT */
/*
 * What a process tells about itself besides what it holds: counters of events, and gauges of its
 * queue pairs. They limit nothing. Shared memory and messages have them as these structures; the
 * rows below name each number, so that whoever shows them needs no list of its own.
 */
#ifndef TERMS_TALLIES_H
#define TERMS_TALLIES_H

#include <stddef.h>
#include <stdint.h>

#include "terms/kinds.h"

enum qp_type { QP_RC, QP_UC, QP_UD, QP_XRC, QP_RAW, QP_DRIVER, QP_TYPES };
enum qp_state { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_ERR, QP_STATES };
enum { QP_NO_PORT, QP_PORTS = 8 }; /* ports past the last are counted in the last */

enum tally_counter {
	COUNTER_CQ_EVENTS,     /* completion events taken from channels */
	COUNTER_CQ_ACKS,       /* of these, acknowledged */
	COUNTER_CQ_GAPS,       /* times between two events that were measured, and */
	COUNTER_CQ_GAP_NS,     /* their sum, */
	COUNTER_CQ_GAP_MAX_NS, /* and the longest */
	COUNTERS
};

enum { CM_EVENTS = 24 }; /* events past the last are counted in the last */

struct tallies {
	uint64_t refused[KIND_COUNT];	/* the owner's threads, atomically */
	uint64_t tolerated[KIND_COUNT]; /* likewise: over a limit in mode warn or audit */
	uint64_t counter[COUNTERS];	/* likewise */
	uint64_t cm_event[CM_EVENTS];	/* likewise */
};

struct gauges {
	uint64_t qp_type[QP_TYPES];   /* the owner's threads, atomically */
	uint64_t qp_state[QP_STATES]; /* likewise */
	uint64_t qp_port[QP_PORTS];   /* likewise */
};

/* A number of one of the two structures. Rows of a group stand together. */
struct tally_row {
	const char *group, *name;
	size_t offset;
};
extern const struct tally_row tally_rows[]; /* of struct tallies */
extern const struct tally_row gauge_rows[]; /* of struct gauges */
extern const unsigned tally_count, gauge_count;

static inline uint64_t tally_value(const void *structure, const struct tally_row *row)
{
	return *(const uint64_t *)((const char *)structure + row->offset);
}

#endif
