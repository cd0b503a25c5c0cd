/* SPDX-License-Identifier: MIT */
/*
 * The library's own state, one per process, begun at the first verb: until
 * then nothing is read, opened or created. It lies on pages that a forked
 * child finds zeroed, so the child starts as a process of its own, without
 * any fork handler. Only the table of objects is not: the child has them, too.
 * All of it is part of the library's own segment, since each mapping more makes
 * every queue that the program maps dearer (docs/benchmarks.md).
 */
#ifndef INTERCEPT_LIBRARY_H
#define INTERCEPT_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pages.h"
#include "intercept/config.h"
#include "intercept/handles.h"
#include "intercept/pace.h"
#include "intercept/refusals.h"
#include "ledger/ledger.h"
#include "terms/rates.h"

enum phase {
	PHASE_NEW,	/* what a forked child finds */
	PHASE_STARTING, /* one thread reads the settings and joins */
	PHASE_ACTIVE,	/* counting and limiting */
	PHASE_OFF,	/* disabled, or failed open: pass through */
	PHASE_CLOSED,	/* failed closed: every constructor refuses */
	PHASE_WAITING,	/* the same, until the collector that is there, or the parent had, answers */
};

_Static_assert((int)PHASE_ACTIVE == (int)RATES_QUIET, "verbs compare one word with both");

/* Buckets of the rates that the environment sets. */
struct library_rates {
	struct bucket_flow flow[RATE_CLASSES]; /* written before the phase is PHASE_ACTIVE */
	uint64_t taken[RATE_CLASSES];
};

struct library {
	uint32_t phase;
	/* How far behind `phase` the word lies that verbs look at: 0, or the distance to one that
	 * is PHASE_ACTIVE while the phase is that, no rate is in force, and no line is
	 * written for each call. */
	uintptr_t word_distance;
	struct config config;
	struct log log;
	struct ledger ledger;
	struct library_rates rates;
	struct lock contexts_lock; /* for writers of the table in contexts.c */
	uint64_t lingering; /* objects that were in the kernel after their context was closed */
	struct report_pace refusals_shown, failures_shown;
	uint64_t refusals;
	uint64_t last_cq_event_ns;
	uint64_t cycles_scale; /* see base/cycles.h; written before the phase is PHASE_ACTIVE */
	int64_t joins_again; /* in PHASE_WAITING: when, in seconds of CLOCK_MONOTONIC */
	uint64_t settings_seen; /* the version that was followed last */
	struct paces paces;
	/* What we destroyed of the process before us while it lived; see inherited.h. */
	bool has_pending_refund;
	uint64_t pending_refund[DEVICES_MAX][KINDS_COUNTED];
	/* From here on fork wipes nothing. */
	struct handles handles __attribute__((aligned(PAGE_LARGEST)));
} __attribute__((aligned(PAGE_LARGEST)));

/* Whether every constructor refuses. */
static inline bool library_refuses(const struct library *library)
{
	return library->phase == PHASE_CLOSED || library->phase == PHASE_WAITING;
}

extern struct library library_state;

static inline uint32_t library_phase(void)
{
	return __atomic_load_n(&library_state.phase, __ATOMIC_ACQUIRE);
}

/* PHASE_ACTIVE where verbs count and nothing else is to be done: no rate and no pace is in force,
 * and no line to be written for each call. One comparison says all of it. */
static inline uint32_t library_word(void)
{
	uintptr_t distance = __atomic_load_n(&library_state.word_distance, __ATOMIC_ACQUIRE);

	return __atomic_load_n((const uint32_t *)((uintptr_t)&library_state.phase + distance),
			       __ATOMIC_ACQUIRE);
}

struct library *library_start(void);

/* The settings of the tenant have changed. */
static inline bool library_is_behind(void)
{
	return settings_version(library_state.ledger.settings) != library_state.settings_seen;
}
struct library *library_follow(void);

/* The state where the library counts, or refuses everything; NULL to pass through. */
static inline struct library *library_get(void)
{
	if (__builtin_expect(library_word() == PHASE_ACTIVE, 1))
		return &library_state;
	return library_start();
}

/* The state only where it counts: for verbs that move and release. */
static inline struct library *library_active(void)
{
	struct library *library;

	if (__builtin_expect(library_word() == PHASE_ACTIVE, 1))
		return &library_state;
	library = library_start();
	return library && library->phase == PHASE_ACTIVE ? library : NULL;
}

#endif
