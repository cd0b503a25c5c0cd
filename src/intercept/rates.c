/* SPDX-License-Identifier: MIT */
/* Rates of control verbs; see rates.h. */
#include "intercept/rates.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "intercept/refusals.h"
#include "terms/verdict.h"

enum {
	/* A waiting call looks again so often: rates may change, and the collector must see that
	 * the process lacks parts. */
	SLICE_NS = 20000000,
};

enum rate_class rate_class_of_making(enum object object)
{
	switch (object) {
	case OBJECT_qp:
		return RATE_create_qp;
	case OBJECT_mr:
	case OBJECT_mkey:
	case OBJECT_umem:
		return RATE_reg_mr;
	case OBJECT_ah:
		return RATE_create_ah;
	default:
		return RATE_NO_CLASS;
	}
}

enum rate_class rate_class_of_freeing(enum object object)
{
	switch (object) {
	case OBJECT_qp:
		return RATE_destroy_qp;
	case OBJECT_mr:
	case OBJECT_mkey:
	case OBJECT_umem:
		return RATE_dereg_mr;
	default:
		return RATE_NO_CLASS;
	}
}

/* One look at the buckets of a call. */
struct rate_look {
	struct rate_set set;
	uint64_t wait_ns;      /* until the fullest way out; 0: a part of each bucket was taken */
	enum rate_owner owner; /* whose bucket was empty */
	struct rate rate;      /* as it was set there */
};

static uint64_t own_take(struct library *library, enum rate_class class, uint64_t **ret_taken)
{
	const struct bucket_flow *flow = &library->rates.flow[class];
	uint64_t *taken = &library->rates.taken[class], position, now = clock_now_ns();

	if (!library->config.rates.rate[class].per_second)
		return 0;
	if (bucket_take(flow, now, taken, RATE_PART, &position)) {
		*ret_taken = taken;
		return 0;
	}
	return rate_part_wait_ns(flow, now, taken);
}

/* A part of each bucket, or of none. The tenant's is the last: what is taken from a bucket that the
 * collector may empty into another is never put back. */
static void look_take(struct library *library, enum rate_class class, struct rate_look *look)
{
	struct ledger *ledger = &library->ledger;
	uint64_t *taken[RATE_OWNERS + 1] = { NULL };

	look->wait_ns = own_take(library, class, &taken[RATE_OF_PROGRAM]);
	look->owner = RATE_OF_PROGRAM;
	look->rate = library->config.rates.rate[class];
	for (unsigned owner = RATE_OWNERS; owner-- > 0 && !look->wait_ns && ledger->rate_leases;) {
		look->wait_ns = rate_leases_take(ledger->rate_leases, ledger->rate_uses,
						 (enum rate_owner)owner, class, &look->set,
						 &taken[owner]);
		look->owner = (enum rate_owner)owner;
		look->rate = look->set.total[owner][class];
	}
	for (unsigned i = 0; i <= RATE_OWNERS && look->wait_ns; i++)
		if (taken[i])
			__atomic_fetch_sub(taken[i], RATE_PART, __ATOMIC_SEQ_CST);
}

/* To be interrupted by a signal ends nothing: its handler has run, and the time goes on. */
static void wait_until(uint64_t when_ns)
{
	struct timespec when = { .tv_sec = (time_t)(when_ns / CLOCK_SECOND_NS),
				 .tv_nsec = (long)(when_ns % CLOCK_SECOND_NS) };

	/* The function of libc would be a cancellation point. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static enum verdict look_verdict(const struct library *library, const struct rate_look *look)
{
	return verdict_at_limit(look->owner == RATE_OF_PROGRAM ? LIMIT_OF_PROGRAM :
								 LIMIT_OF_POLICY,
				ledger_mode(&library->ledger), library->config.mode);
}

static void count(struct library *library, enum rate_tally tally, enum rate_class class,
		  uint64_t amount)
{
	ledger_count_rate(&library->ledger, tally, class, amount);
}

/* A call that was told to wait: goes on until it has what it needs, or may wait no longer. */
static int rates_wait(struct library *library, enum rate_class class, const char *verb,
		      struct rate_look *look)
{
	bool own = look->owner == RATE_OF_PROGRAM, frees = rate_rows[class].frees;
	uint64_t most = own ? library->config.rates.max_delay_ns : look->set.max_delay_ns;
	bool denies = (own ? library->config.rates.action : look->set.action) == RATE_DENY;
	uint64_t begun = clock_now_ns(), now = begun, next;
	enum verdict verdict = look_verdict(library, look);

	if (verdict != VERDICT_REFUSED) {
		count(library, RATE_TOLERATED, class, 1);
		if (verdict == VERDICT_TOLD)
			refusal_report_rate(library, verb, class, look->owner, &look->rate, true);
		return 0;
	}
	if (!denies || frees) {
		while (look->wait_ns && now < begun + most) {
			next = now + (look->wait_ns < SLICE_NS ? look->wait_ns : SLICE_NS);
			wait_until(next < begun + most ? next : begun + most);
			look_take(library, class, look);
			now = clock_now_ns();
		}
		count(library, RATE_THROTTLED, class, 1);
		count(library, RATE_THROTTLED_NS, class, now - begun);
	}
	if (!look->wait_ns || frees)
		return 0;
	count(library, RATE_REFUSED, class, 1);
	refusal_report_rate(library, verb, class, look->owner, &look->rate, false);
	return EAGAIN;
}

int rates_take(struct library *library, enum rate_class class, const char *verb)
{
	struct rate_look look = { .wait_ns = 0 };
	int saved = errno, result = 0;

	if (class == RATE_NO_CLASS)
		return 0;
	if (library->ledger.rate_uses)
		__atomic_fetch_add(&library->ledger.rate_uses->asked[class], 1, __ATOMIC_RELAXED);
	look_take(library, class, &look);
	if (look.wait_ns)
		result = rates_wait(library, class, verb, &look);
	errno = saved;
	return result;
}

int rates_pass_slowly(enum rate_class class, const char *verb)
{
	struct library *library = library_start();

	return library && library_phase() == PHASE_ACTIVE ? rates_take(library, class, verb) : 0;
}
