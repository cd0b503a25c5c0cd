/* SPDX-License-Identifier: MIT */
/* Rates in force, buckets and waiting; see pace.h. */
#include "intercept/pace.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cycles.h"
#include "intercept/library.h"
#include "intercept/posts.h"
#include "ledger/leaselayout.h"

enum {
	SPIN_NS = 50000,      /* a shorter wait does not sleep */
	SLICE_NS = 10000000,  /* one sleep: after it rates and settings are looked at again */
	FLOOR_BURST = 16384,  /* while a device is held */
};
#define PACE_DELAY_NS 10000000000ull /* that one call waits, if no policy says */
#define BYTES_MOST (1ull << 42)
#define OPERATIONS_MOST (1ull << 19)

static bool pace_lock_try(struct lock *lock)
{
	uint32_t expected = LOCK_FREE;

	return __atomic_compare_exchange_n(&lock->word, &expected, LOCK_HELD, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* ---- the rates in force */

static bool pace_is_held(const char *held, const char *device)
{
	size_t length = strlen(device);

	if (!strcmp(held, "*"))
		return true;
	while (*held) {
		size_t word = strcspn(held, " ");

		if (word == length && !memcmp(held, device, length))
			return true;
		held += word;
		held += strspn(held, " ");
	}
	return false;
}

/* A tenant's rate, or of a process with a lease the share of it that the collector gives: nearly
 * nothing until it has said how much. The burst is divided as the rate is. */
static struct pace_rate rate_share(struct pace_rate tenant, struct pace_rate process,
				   const uint64_t *leased, uint64_t least)
{
	struct pace_rate rate = pace_rate_lower(process, tenant, least);
	uint64_t share = leased ? __atomic_load_n(leased, __ATOMIC_RELAXED) : UINT64_MAX;

	if (!pace_rate_is_limit(&rate) || share >= rate.per_second)
		return rate;
	rate.burst = (uint64_t)((unsigned __int128)pace_rate_burst(&rate, least) * share /
				rate.per_second);
	rate.burst += !rate.burst;
	rate.per_second = share ? share : 1;
	return rate;
}

/* leased: processes of a tenant that come one after another must not have a burst each. */
static void bucket_follow(struct pace_bucket *bucket, const struct pace_rate *rate, uint64_t least,
			  bool leased, uint64_t now)
{
	bool limit = pace_rate_is_limit(rate), begins = !bucket->rate;

	pace_bucket_set(bucket, limit ? rate->per_second : 0, limit ? pace_rate_burst(rate, least) : 0, now);
	if (begins && leased)
		bucket->balance = 0;
}

/* Under the lock. */
static void pace_rates(struct library *library, struct pace *pace, uint64_t now)
{
	const struct pace_settings *settings = &library->paces.settings.pace;
	const struct config *config = &library->config;
	unsigned device = (unsigned)(pace - library->paces.device);
	const struct lease_share *share = ledger_share(&library->ledger, device);
	struct pace_rate bytes, operations, floor = { .burst = FLOOR_BURST };

	bytes = rate_share(settings->bytes, settings->process_bytes, share ? &share->bytes : NULL,
			   PACE_BYTES_LEAST);
	operations = rate_share(settings->operations, settings->process_operations,
				share ? &share->operations : NULL, PACE_OPERATIONS_LEAST);
	if (settings->held[0] &&
	    pace_is_held(settings->held, ledger_device_name(&library->ledger, device))) {
		floor.per_second = share ? __atomic_load_n(&share->floor, __ATOMIC_RELAXED) : 0;
		if (!floor.per_second)
			floor.per_second = settings->floor;
		bytes = pace_rate_lower(floor, bytes, PACE_BYTES_LEAST);
	}
	bytes = pace_rate_lower(config->pace_bytes, bytes, PACE_BYTES_LEAST);
	operations = pace_rate_lower(config->pace_operations, operations, PACE_OPERATIONS_LEAST);
	bucket_follow(&pace->bytes, &bytes, PACE_BYTES_LEAST, pace_rate_is_limit(&settings->bytes), now);
	bucket_follow(&pace->operations, &operations, PACE_OPERATIONS_LEAST,
		      pace_rate_is_limit(&settings->operations), now);
}

/* ---- charging */

/* Takes what is in `recent` out of the buckets, by the rates under which it was posted. */
static void pace_fold(struct pace *pace, bool waited, uint64_t now)
{
	struct posted *posted = pace->posted;
	uint64_t recent = __atomic_exchange_n(&posted->recent, 0, __ATOMIC_RELAXED);
	uint64_t bytes = recent & ((1ull << POSTED_SHIFT) - 1);

	__atomic_fetch_add(&posted->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&posted->operations, recent >> POSTED_SHIFT, __ATOMIC_RELAXED);
	pace_bucket_fill(&pace->bytes, now, waited);
	pace_bucket_fill(&pace->operations, now, waited);
	pace_bucket_spend(&pace->bytes, (int64_t)bytes);
	pace_bucket_spend(&pace->operations, (int64_t)(recent >> POSTED_SHIFT));
}

/* What was posted, then the rates of now, then how much may be posted. Under the lock. Returns how
 * long a post would have to wait now. */
static uint64_t pace_update(struct library *library, struct pace *pace, bool waited)
{
	uint64_t now = clock_now_ns(), wait, other;

	pace_fold(pace, waited, now);
	pace_rates(library, pace, now);
	wait = pace_bucket_wait_ns(&pace->bytes);
	other = pace_bucket_wait_ns(&pace->operations);
	wait = wait > other ? wait : other;
	pace->bytes_left = pace_bucket_allowance(&pace->bytes, BYTES_MOST);
	pace->operations_left = pace_bucket_allowance(&pace->operations, OPERATIONS_MOST);
	__atomic_store_n(&pace->in_debt, wait != 0, __ATOMIC_RELAXED);
	return wait;
}

/* bytes, operations: beyond what is in `recent`. */
void pace_settle(struct pace *pace, uint64_t bytes, uint64_t operations)
{
	if (bytes | operations) {
		__atomic_fetch_add(&pace->posted->bytes, bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&pace->posted->operations, operations, __ATOMIC_RELAXED);
		lock_acquire(&pace->lock);
		pace_bucket_spend(&pace->bytes, (int64_t)bytes);
		pace_bucket_spend(&pace->operations, (int64_t)operations);
	} else if (!pace_lock_try(&pace->lock)) {
		return; /* somebody does it just now */
	}
	pace_update(&library_state, pace, false);
	lock_release(&pace->lock);
}

void pace_refund(struct pace *pace, uint64_t bytes, uint64_t operations)
{
	if (!pace->posted)
		return;
	__atomic_fetch_sub(&pace->posted->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&pace->posted->operations, operations, __ATOMIC_RELAXED);
	lock_acquire(&pace->lock);
	pace_bucket_spend(&pace->bytes, -(int64_t)bytes);
	pace_bucket_spend(&pace->operations, -(int64_t)operations);
	lock_release(&pace->lock);
}

/* ---- queue pairs */

static struct lock *qp_pace_lock(struct library *library, const struct qp_pace *pace)
{
	return &library->paces.qp_pace_lock[(uintptr_t)pace / sizeof(*pace) % QP_PACE_LOCKS];
}

/* By the rates of now. Under the lock. Returns how long a post would have to wait. */
static uint64_t qp_pace_update(struct library *library, struct qp_pace *pace, int64_t bytes,
			       int64_t operations, bool waited)
{
	const struct pace_settings *settings = &library->paces.settings.pace;
	uint64_t now = clock_now_ns(), wait, other;

	bucket_follow(&pace->bytes, &settings->qp_bytes, PACE_BYTES_LEAST, false, now);
	bucket_follow(&pace->operations, &settings->qp_operations, PACE_OPERATIONS_LEAST, false, now);
	pace_bucket_fill(&pace->bytes, now, waited);
	pace_bucket_fill(&pace->operations, now, waited);
	pace_bucket_spend(&pace->bytes, bytes);
	pace_bucket_spend(&pace->operations, operations);
	wait = pace_bucket_wait_ns(&pace->bytes);
	other = pace_bucket_wait_ns(&pace->operations);
	wait = wait > other ? wait : other;
	__atomic_store_n(&pace->in_debt, wait != 0, __ATOMIC_RELAXED);
	return wait;
}

void qp_pace_charge(struct qp_pace *pace, int64_t bytes, int64_t operations)
{
	struct lock *lock = qp_pace_lock(&library_state, pace);

	lock_acquire(lock);
	qp_pace_update(&library_state, pace, bytes, operations, false);
	lock_release(lock);
}

/* ---- waiting */

/* The system call itself: the function would be a new point where a thread can be cancelled. */
static void pace_sleep(uint64_t ns)
{
	struct timespec time = { 0, (long)(ns < SLICE_NS ? ns : SLICE_NS) };

	if (ns > SPIN_NS) {
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
		return;
	}
	for (uint64_t until = clock_now_ns() + ns; clock_now_ns() < until;)
		cycles_pause();
}

/* How long to wait before the next look; 0: the post may be made. */
static uint64_t device_wait_ns(struct library *library, struct pace *pace, bool waited)
{
	uint64_t wait;

	if (__atomic_load_n(pace->version, __ATOMIC_RELAXED) != pace->seen)
		pace_follow(library);
	if (!__atomic_load_n(&library->paces.on, __ATOMIC_RELAXED))
		return 0;
	if (!pace_lock_try(&pace->lock))
		return SPIN_NS;
	wait = pace_update(library, pace, waited);
	lock_release(&pace->lock);
	return wait;
}

static uint64_t qp_wait_ns(struct library *library, struct qp_pace *pace, bool waited)
{
	struct lock *lock = qp_pace_lock(library, pace);
	uint64_t wait;

	if (!__atomic_load_n(&library->paces.each_qp, __ATOMIC_RELAXED))
		return 0;
	lock_acquire(lock);
	wait = qp_pace_update(library, pace, 0, 0, waited);
	lock_release(lock);
	return wait;
}

/* qp: NULL unless it has a pace of its own. The device comes first: it follows the settings. */
static uint64_t post_wait_ns(struct library *library, struct pace *device, struct qp_pace *qp,
			     bool waited)
{
	uint64_t wait = device_wait_ns(library, device, waited);
	uint64_t other = qp ? qp_wait_ns(library, qp, waited) : 0;

	return wait > other ? wait : other;
}

static void pace_delay(struct posted *posted, struct pace *device, struct qp_pace *qp)
{
	struct library *library = &library_state;
	int saved = errno;
	uint64_t wait = post_wait_ns(library, device, qp, false), begun, passed = 0;

	errno = saved;
	if (!wait)
		return;
	begun = clock_now_ns();
	__atomic_fetch_add(&posted->waiting, 1, __ATOMIC_RELAXED);
	while (wait && passed < library->paces.settings.pace.max_delay_ns) {
		uint64_t left = library->paces.settings.pace.max_delay_ns - passed;

		pace_sleep(wait < left ? wait : left);
		passed = clock_now_ns() - begun;
		wait = post_wait_ns(library, device, qp, true);
	}
	__atomic_fetch_sub(&posted->waiting, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&posted->delays, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&posted->delayed_ns, passed, __ATOMIC_RELAXED);
	errno = saved;
}

void pace_look(struct pace *pace)
{
	struct posted *posted = __atomic_load_n(&pace->posted, __ATOMIC_ACQUIRE);

	if (posted)
		pace_delay(posted, pace, NULL);
}

void qp_pace_look(struct qp_pace *pace)
{
	struct posted *posted = __atomic_load_n(&pace->device->posted, __ATOMIC_ACQUIRE);

	if (posted)
		pace_delay(posted, pace->device, pace);
}

/* A forked child posts on its parent's queue pair, where our functions stand, before its first verb. */
void pace_start(void)
{
	struct library *library;
	int saved = errno;

	if (library_phase() != PHASE_NEW)
		return;
	library = library_active();
	if (library)
		pace_follow(library);
	errno = saved;
}

/* ---- on and off */

static bool pace_is_wanted(const struct library *library)
{
	return library->paces.settings.pace.is_counted ||
	       pace_rate_is_limit(&library->config.pace_bytes) ||
	       pace_rate_is_limit(&library->config.pace_operations);
}

/* Under paces.lock. The settings are not written while a pace reads them: pace_rates is called
 * under the lock of each. */
static void paces_set(struct library *library, const struct tenant_settings *settings)
{
	struct paces *paces = &library->paces;

	for (unsigned i = 0; i < DEVICES_MAX; i++)
		lock_acquire(&paces->device[i].lock);
	for (unsigned i = 0; i < QP_PACE_LOCKS; i++)
		lock_acquire(&paces->qp_pace_lock[i]);
	paces->settings = *settings;
	__atomic_store_n(&paces->each_qp,
			 pace_rate_is_limit(&settings->pace.qp_bytes) ||
				 pace_rate_is_limit(&settings->pace.qp_operations),
			 __ATOMIC_RELAXED);
	for (unsigned i = 0; i < QP_PACE_LOCKS; i++)
		lock_release(&paces->qp_pace_lock[i]);
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		struct pace *pace = &paces->device[i];

		__atomic_store_n(&pace->seen, settings->version, __ATOMIC_RELAXED);
		if (pace->posted && pace_is_wanted(library))
			pace_update(library, pace, false);
		else
			__atomic_store_n(&pace->in_debt, 0, __ATOMIC_RELAXED);
		lock_release(&pace->lock);
	}
}

/* Only of devices that are used: others need no memory in the ledger. */
void pace_begin(struct library *library, unsigned device)
{
	struct pace *pace = &library->paces.device[device];

	lock_acquire(&pace->lock);
	if (!pace->posted) {
		pace->version = &ledger_settings(&library->ledger)->version;
		__atomic_store_n(&pace->seen, library->paces.settings.version, __ATOMIC_RELAXED);
		__atomic_store_n(&pace->posted, ledger_posted(&library->ledger, device),
				 __ATOMIC_RELEASE);
		pace_update(library, pace, false);
	}
	lock_release(&pace->lock);
}

void pace_follow(struct library *library)
{
	struct paces *paces = &library->paces;
	struct tenant_settings settings;

	if (!pace_lock_try(&paces->lock))
		return; /* another thread does */
	if (settings_read(ledger_settings(&library->ledger), &settings)) {
		bool wanted;

		settings.pace.held[sizeof(settings.pace.held) - 1] = '\0';
		if (!settings.pace.max_delay_ns)
			settings.pace.max_delay_ns = PACE_DELAY_NS;
		paces_set(library, &settings);
		wanted = pace_is_wanted(library);
		if (wanted != paces->on) {
			__atomic_store_n(&paces->on, wanted, __ATOMIC_SEQ_CST);
			posts_switch(library, wanted);
		}
		__atomic_store_n(&library->settings_seen, settings.version, __ATOMIC_RELEASE);
	}
	lock_release(&paces->lock);
}
