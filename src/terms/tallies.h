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
#include "terms/rates.h"

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

enum rate_tally {
	RATE_THROTTLED,	   /* calls that waited, */
	RATE_THROTTLED_NS, /* and how long */
	RATE_REFUSED,
	RATE_TOLERATED, /* in mode warn or audit */
	RATE_TALLIES
};

/* Classes of control verbs; see verb_classes.def. */
enum verb_class {
#define VERB_CLASS(name, text) VERB_##name,
#include "terms/verb_classes.def"
#undef VERB_CLASS
	VERB_CLASSES
};

struct verb_class_row {
	const char *name;
	const char *text;
};
extern const struct verb_class_row verb_class_rows[VERB_CLASSES];

/* How long calls took: bucket b has those of less than 2^(LATENCY_LEAST + b) ns that are not in the
 * one before; the last one all that took longer. */
enum { LATENCY_LEAST = 10, LATENCY_BUCKETS = 22 };

static inline unsigned latency_bucket(uint64_t ns)
{
	unsigned bucket = 64 - LATENCY_LEAST -
			  (unsigned)__builtin_clzll(ns | ((1ull << LATENCY_LEAST) - 1));

	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* Calls of a class of verbs. The buckets together are the calls that reached the provider. */
struct verb_tally {
	uint64_t refused; /* the owner's threads, atomically: by a limit or a rate */
	uint64_t failed;  /* likewise: by the provider or the kernel */
	uint64_t ns;	  /* likewise: how long all of them together took in the provider */
	uint64_t latency[LATENCY_BUCKETS]; /* likewise */
};

struct tallies {
	uint64_t refused[KIND_COUNT];	/* the owner's threads, atomically */
	uint64_t tolerated[KIND_COUNT]; /* likewise: over a limit in mode warn or audit */
	uint64_t counter[COUNTERS];	/* likewise */
	uint64_t cm_event[CM_EVENTS];	/* likewise */
	uint64_t rate[RATE_TALLIES][RATE_CLASSES]; /* likewise: calls above a rate */
	struct verb_tally verb[VERB_CLASSES];
};

/*
 * What was posted while posts are counted. `recent` has both numbers of the latest posts in one
 * word, so that a post is one addition; what it holds is moved to the totals now and then.
 */
enum { POSTED_SHIFT = 44 }; /* of `recent`: operations above, bytes below */

struct posted {
	uint64_t recent;     /* the owner's threads, atomically */
	uint64_t bytes;	     /* likewise, without `recent` */
	uint64_t operations; /* likewise */
	uint64_t errors;     /* likewise: completions that report an error */
	uint64_t delays;     /* likewise: calls that waited, */
	uint64_t delayed_ns; /* and for how long */
	uint64_t waiting;    /* likewise: calls that wait at this moment */
};

struct gauges {
	uint64_t qp_type[QP_TYPES];   /* the owner's threads, atomically */
	uint64_t qp_state[QP_STATES]; /* likewise */
	uint64_t qp_port[QP_PORTS];   /* likewise */
	struct posted posted;
};

/* Queue pairs by the class in their address vector, of processes that have to use one. A traffic
 * class is counted without its two lowest bits, which are the network's (ECN). */
enum { QP_CLASSES = 64, QP_LEVELS = 16 };

struct class_gauges {
	uint64_t traffic_class[QP_CLASSES]; /* the owner's threads, atomically */
	uint64_t service_level[QP_LEVELS];  /* likewise */
};

/* Moves what is in `recent` of a copy to its totals. */
static inline void posted_fold(struct posted *copy)
{
	copy->bytes += copy->recent & ((1ull << POSTED_SHIFT) - 1);
	copy->operations += copy->recent >> POSTED_SHIFT;
	copy->recent = 0;
}

/* A number of one of the structures, or the sum of several that follow one another. Rows of a group
 * stand together. */
struct tally_row {
	const char *group, *name;
	size_t offset;
	unsigned words;
};
extern const struct tally_row tally_rows[]; /* of struct tallies, */
extern const struct tally_row latency_rows[]; /* likewise: of which most are 0 */
extern const struct tally_row gauge_rows[]; /* of struct gauges */
extern const struct tally_row class_rows[]; /* of struct class_gauges */
extern const unsigned tally_count, latency_count, gauge_count, class_count;

static inline uint64_t tally_value(const void *structure, const struct tally_row *row)
{
	const uint64_t *word = (const uint64_t *)((const char *)structure + row->offset);
	uint64_t sum = *word;

	for (unsigned i = 1; i < row->words; i++)
		sum += word[i];
	return sum;
}

/* Adds the numbers of one process, which may write them at this moment, to those of many. A sum
 * that does not fit stays at the most. */
void tallies_add(struct tallies *sum, const struct tallies *one);
void posted_add(struct posted *sum, const struct posted *one);
void gauges_add(struct gauges *sum, const struct gauges *one);

#endif
