/* SPDX-License-Identifier: MIT */
/* Counting calls; see calls.h. */
#include "intercept/calls.h"

/* NULL before the process has joined. */
static struct verb_tally *call_tally(struct library *library, enum verb_class class)
{
	struct tallies *tallies = __atomic_load_n(&library->ledger.tallies, __ATOMIC_RELAXED);

	return tallies ? &tallies->verb[class] : NULL;
}

void call_count(struct library *library, enum verb_class class, uint64_t begun, bool failed)
{
	uint64_t ns = cycles_ns(cycles_now() - begun, library->cycles_scale);
	struct verb_tally *tally = call_tally(library, class);

	if (__builtin_expect(!tally, 0))
		return;
	__atomic_fetch_add(&tally->latency[latency_bucket(ns)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tally->ns, ns, __ATOMIC_RELAXED);
	if (__builtin_expect(failed, 0))
		__atomic_fetch_add(&tally->failed, 1, __ATOMIC_RELAXED);
}

__attribute__((cold)) void call_count_refused(struct library *library, enum verb_class class)
{
	struct verb_tally *tally = call_tally(library, class);

	if (tally)
		__atomic_fetch_add(&tally->refused, 1, __ATOMIC_RELAXED);
}

__attribute__((cold)) void call_count_refused_active(enum verb_class class)
{
	struct library *library = library_active();

	if (library)
		call_count_refused(library, class);
}
