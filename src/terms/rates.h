/* SPDX-License-Identifier: MIT */
/*
 * Rates of control verbs: the classes (rates.def), a rate as people write it, and the memory by
 * which the collector leases rates to a process. It lies in the process's usage page. Each word has
 * one writer: struct rate_leases is the collector's, struct rate_uses the process's.
 *
 * A process takes first and then looks whether the leases have changed; the collector changes them
 * first and then looks what was taken. All of it is sequentially consistent, so one of the two sees
 * the other, and what the collector takes from a bucket to give it to another was not used.
 */
#ifndef TERMS_RATES_H
#define TERMS_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "terms/bucket.h"

enum rate_class {
#define RATE_CLASS(name, frees, text) RATE_##name,
#include "terms/rates.def"
#undef RATE_CLASS
	RATE_CLASSES,
	RATE_NO_CLASS = RATE_CLASSES,
};

struct rate_row {
	const char *name;
	const char *text;
	bool frees;
};
extern const struct rate_row rate_rows[RATE_CLASSES];

/* Whose rate: of the tenant, split over its processes; of each process by the policy; of the
 * program's own environment. */
enum rate_owner { RATE_OF_TENANT, RATE_OF_PROCESS, RATE_OWNERS, RATE_OF_PROGRAM = RATE_OWNERS };
extern const char *const rate_owner_names[RATE_OWNERS + 1];

enum rate_action { RATE_THROTTLE, RATE_DENY, RATE_ACTIONS };
extern const char *const rate_action_names[RATE_ACTIONS];

#define RATE_PART (1ull << 16) /* one call, in the parts of buckets */

enum {
	RATE_MOST = 1000000,	    /* calls per second, and the burst */
	RATE_DELAY_MS = 100,	    /* max_delay if nobody sets it, */
	RATE_DELAY_MOST_MS = 60000, /* and the most */
	RATE_TEXT = 48,
};

/* Calls per second, 0 for unlimited, and how many at once. */
struct rate {
	uint32_t per_second;
	uint32_t burst;
};

/* "100/s", "100/s burst 20" or "unlimited". Without a burst it is a tenth of a second's calls, at
 * least 1. 0, or -EINVAL with nothing written. */
int rate_parse(const char *text, struct rate *ret_rate);
void rate_print(const struct rate *rate, char ret_text[RATE_TEXT]);

/* The lower of two rates, with the lower of their bursts: it allows no more than either. */
struct rate rate_lower(struct rate a, struct rate b);

/* The class of that name; RATE_NO_CLASS. */
enum rate_class rate_class_find(const char *name, size_t length);

/* "100ms", "2s", "500us": at most RATE_DELAY_MOST_MS. 0, or -EINVAL. */
int rate_delay_parse(const char *text, uint64_t *ret_ns);
void rate_delay_print(uint64_t ns, char ret_text[RATE_TEXT]);

/* ---- leases */

/* Every verb reads one word to learn that no rate and no pace is in force: the value of this one. */
enum { RATES_QUIET = 2 };

struct rate_set {
	uint64_t action; /* enum rate_action */
	uint64_t max_delay_ns;
	uint64_t in_force[RATE_OWNERS]; /* bit c: class c has a rate */
	struct rate total[RATE_OWNERS][RATE_CLASSES]; /* as the policy says it: for messages */
	struct bucket_flow flow[RATE_OWNERS][RATE_CLASSES];
};

/* A change is written into the set that is not in force, and put into force by one store: whoever
 * writes may be killed at any instruction. */
struct rate_leases {
	uint64_t changes; /* the set in force is changes % 2 */
	uint32_t quiet;	  /* RATES_QUIET while no rate and no pace is in force */
	uint32_t unused;
	struct rate_set set[2];
};

struct rate_uses {
	uint64_t taken[RATE_OWNERS][RATE_CLASSES]; /* of the buckets, by seq_cst operations */
	uint64_t asked[RATE_CLASSES];  /* calls ever, while a rate was in force, */
	uint64_t missed[RATE_CLASSES]; /* and looks that found the bucket of the tenant empty */
};

_Static_assert(sizeof(struct rate_set) % sizeof(uint64_t) == 0, "it is copied by words");

/* Changes with the set in force. */
static inline uint64_t rate_leases_changes(const struct rate_leases *leases)
{
	return __atomic_load_n(&leases->changes, __ATOMIC_SEQ_CST);
}

/* A copy of the set in force; the number of changes before it. */
uint64_t rate_leases_read(const struct rate_leases *leases, struct rate_set *ret_set);

/* Puts a set into force. */
void rate_leases_write(struct rate_leases *leases, const struct rate_set *set);

/* Takes a call out of a bucket that the collector fills: 0, or for how long the caller must wait. The
 * set by which that was decided is in *ret_set, the word that was raised in *ret_taken: NULL if no
 * such rate is in force. */
uint64_t rate_leases_take(const struct rate_leases *leases, struct rate_uses *uses,
			  enum rate_owner owner, enum rate_class class, struct rate_set *ret_set,
			  uint64_t **ret_taken);

/* How long a call waits that has got nothing. Never 0, which says that it has: another thread may
 * have put its part back since the call looked. */
uint64_t rate_part_wait_ns(const struct bucket_flow *flow, uint64_t now, const uint64_t *taken);

#endif
