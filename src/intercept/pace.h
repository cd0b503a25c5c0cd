/* SPDX-License-Identifier: MIT */
/*
 * How fast this process may post on a device. A post is charged at its full size, and a post that
 * finds debt of earlier ones waits before it is made. Which functions are replaced for this is the
 * affair of posts.c; here are the rates in force, the buckets and the waiting.
 */
#ifndef INTERCEPT_PACE_H
#define INTERCEPT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "terms/pace_bucket.h"
#include "terms/settings.h"
#include "terms/tallies.h"
#include "terms/terms.h"

struct library;

/* Of one device. All zeros: nothing is counted. */
struct pace {
	struct posted *posted;	 /* NULL: nothing is counted; stored last */
	const uint64_t *version; /* of the settings in shared memory, */
	uint64_t seen;		 /* and the one that these rates are of */
	uint64_t bytes_left;	  /* so much may be in posted->recent before the next look */
	uint64_t operations_left; /* likewise */
	uint32_t in_debt;	  /* the next post waits */
	struct lock lock;	  /* of the rest; who finds it taken goes on without */
	struct pace_bucket bytes, operations;
};

/* Of one queue pair, beside that of its device: used while the tenant has a pace for each. All zeros:
 * full buckets. A lock of the process guards it (qp_pace_lock). */
struct qp_pace {
	struct pace *device;
	uint32_t in_debt; /* the next post on it waits */
	struct pace_bucket bytes, operations;
};

enum { QP_PACE_LOCKS = 16 };

/* Larger ones are added to the totals at once, so that `recent` cannot overflow. */
#define PACE_BYTES_AT_ONCE (1ull << 34)
#define PACE_OPERATIONS_AT_ONCE (1ull << 9)

/* Of all devices of the process, by the ledger's numbers; fork wipes them. */
struct paces {
	uint32_t on; /* posts are counted: contexts and queue pairs lead to posts.c */
	struct lock lock; /* for who switches */
	uint32_t each_qp; /* there is a pace for each queue pair */
	struct lock qp_lock; /* of posts.c: for who adds a queue pair to its table */
	struct lock qp_pace_lock[QP_PACE_LOCKS]; /* each for a part of the queue pairs */
	struct tenant_settings settings; /* as read last */
	struct pace device[DEVICES_MAX];
};

/* Reads the settings, and replaces functions or puts them back where that has changed. */
void pace_follow(struct library *library);

/* Posts on a device are counted from now on, if they are not already. */
void pace_begin(struct library *library, unsigned device);

/* The slow halves of the functions below. */
void pace_look(struct pace *pace);
void pace_start(void);
void pace_settle(struct pace *pace, uint64_t bytes, uint64_t operations);
void pace_refund(struct pace *pace, uint64_t bytes, uint64_t operations);

/* The same of a queue pair. A refund is a negative charge. */
void qp_pace_look(struct qp_pace *pace);
void qp_pace_charge(struct qp_pace *pace, int64_t bytes, int64_t operations);

static inline bool pace_wants_look(const struct pace *pace)
{
	return pace->in_debt | (__atomic_load_n(pace->version, __ATOMIC_RELAXED) ^ pace->seen);
}

/* Before a post: waits while there is debt, and follows changed settings. */
static inline void pace_before(struct pace *pace)
{
	/* Acquire: `version`, which pace_wants_look follows, was stored before. Where loads are made
	 * out of order it could be NULL still. */
	if (__builtin_expect(!__atomic_load_n(&pace->posted, __ATOMIC_ACQUIRE), 0))
		pace_start();
	else if (__builtin_expect(pace_wants_look(pace), 0))
		pace_look(pace);
}

/* The same for a post on a queue pair that has a pace of its own: one wait for both. */
static inline void qp_pace_before(struct qp_pace *pace)
{
	if (!__atomic_load_n(&pace->device->posted, __ATOMIC_ACQUIRE)) /* as above */
		pace_start();
	else if (__atomic_load_n(&pace->in_debt, __ATOMIC_RELAXED) || pace_wants_look(pace->device))
		qp_pace_look(pace);
}

/* Charges a post. Never waits. */
static inline void pace_charge(struct pace *pace, uint64_t bytes, uint64_t operations)
{
	struct posted *posted = __atomic_load_n(&pace->posted, __ATOMIC_RELAXED);
	uint64_t recent;

	if (__builtin_expect(!posted, 0))
		return;
	if (__builtin_expect(bytes > PACE_BYTES_AT_ONCE || operations > PACE_OPERATIONS_AT_ONCE,
			     0)) {
		pace_settle(pace, bytes, operations);
		return;
	}
	bytes |= operations << POSTED_SHIFT;
	recent = __atomic_add_fetch(&posted->recent, bytes, __ATOMIC_RELAXED);
	if (__builtin_expect((recent & ((1ull << POSTED_SHIFT) - 1)) > pace->bytes_left ||
				     recent >> POSTED_SHIFT > pace->operations_left,
			     0))
		pace_settle(pace, 0, 0);
}

#endif
