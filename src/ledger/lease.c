/* SPDX-License-Identifier: MIT */
/*
 * The process's side of a lease. Inside it a charge is one atomic operation on
 * memory that no other process writes; only what goes beyond is asked of the
 * collector. What the two sides share is in leaselayout.h.
 */
#include "ledger/lease.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/pages.h"
#include "base/signals.h"

enum {
	/* So often, and for LEASE_PATIENCE_MS, one charge asks while others take what was given. */
	ROUNDS_LEAST = 1000,
};

const uint64_t lease_no_cap[KINDS_COUNTED];

/*
 * Adds one amount if it stays inside the cap. The second look is what makes it safe:
 * the collector lowers the cap and then reads `used`, we raise `used` and then read the
 * cap, and the compare-and-swap is the barrier between. The first look keeps a large
 * request that has no chance from getting in the way of small ones of other threads.
 */
static inline bool lease_take_kind(uint64_t *used, const uint64_t *cap, uint64_t amount)
{
	uint64_t before = __atomic_load_n(used, __ATOMIC_RELAXED);

	do {
		if (before + amount > __atomic_load_n(cap, __ATOMIC_RELAXED))
			return amount == 0;
	} while (!__atomic_compare_exchange_n(used, &before, before + amount, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	if (__builtin_expect(before + amount <= __atomic_load_n(cap, __ATOMIC_SEQ_CST), 1))
		return true;
	__atomic_fetch_sub(used, amount, __ATOMIC_SEQ_CST);
	return amount == 0;
}

/* All of a cost or nothing. */
static inline bool lease_take(struct ledger_lease *lease, unsigned device, const struct cost *cost)
{
	uint64_t *used = lease->usage->row[device].used;
	const uint64_t *cap = __atomic_load_n(&lease->cap[device], __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < cost->count; i++)
		if (__builtin_expect(!lease_take_kind(&used[cost->kind[i]], &cap[cost->kind[i]],
						      cost->amount[i]),
				     0)) {
			lease_give_back(used, cost, i);
			return false;
		}
	return true;
}

void lease_add(struct ledger_lease *lease, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&lease->usage->row[device].used[cost->kind[i]], cost->amount[i],
				   __ATOMIC_SEQ_CST);
}

uint64_t lease_total(const struct ledger_lease *lease, unsigned device, const struct cost *cost,
		     unsigned i)
{
	return __atomic_load_n(&lease->usage->row[device].used[cost->kind[i]], __ATOMIC_SEQ_CST) +
	       cost->amount[i];
}

/* Whether we hold less now than when we asked: then the refusal was of another question. */
static bool grow_reply_is_outdated(const struct ledger_lease *lease, unsigned device,
				   const struct cost *cost, const struct proto_grow_request *asked)
{
	for (unsigned i = 0; i < cost->count; i++)
		if (lease_total(lease, device, cost, i) < asked->total[i])
			return true;
	return false;
}

/*
 * The row of a lease that lies beyond those that stay mapped. mremap with a size of 0 maps the
 * file once more without a descriptor of it: first the whole table, out of that one row. A page
 * of the large mapping that is touched would need a page of page tables for itself alone.
 */
static const struct lease_row *lease_far_row(const struct lease_table *near, uint32_t number)
{
	size_t offset = offsetof(struct lease_table, row[number]), before = offset % PAGE_LARGEST;
	char *whole = mremap((void *)near, 0, sizeof(*near), MREMAP_MAYMOVE), *page;

	assert(number < LEASES_MAX);
	if (whole == MAP_FAILED)
		return NULL;
	page = mremap(whole + offset - before, 0, before + sizeof(struct lease_row),
		      MREMAP_MAYMOVE);
	munmap(whole, sizeof(*near));
	return page == MAP_FAILED ? NULL : (const struct lease_row *)(page + before);
}

/* False where there is no memory to map it. */
static bool lease_find_caps(struct ledger_lease *lease, unsigned device, uint32_t number)
{
	const struct lease_row *row;

	if (lease->cap[device] != lease_no_cap && lease->number[device] == number)
		return true;
	row = number < LEASE_NEAR_ROWS ? &lease->table->row[number] :
					 lease_far_row(lease->table, number);
	if (!row)
		return false;
	lease->number[device] = number;
	__atomic_store_n(&lease->cap[device], row->cap, __ATOMIC_RELEASE);
	return true;
}

static bool lease_number_is_valid(const struct proto_grow_reply *answer, int status)
{
	return answer->lease < LEASES_MAX ||
	       (answer->lease == PROTO_NO_LEASE && status == PROTO_REFUSED);
}

/* Takes what was granted although it is over a limit, and has no cap for that reason. Not more
 * than was granted: another thread may have taken something inside the cap meanwhile. */
static bool lease_take_granted(struct ledger_lease *lease, unsigned device, const struct cost *cost,
			       const struct proto_grow_request *asked)
{
	uint64_t *used = lease->usage->row[device].used;

	for (unsigned i = 0; i < cost->count; i++)
		if (!lease_take_kind(&used[cost->kind[i]], &asked->total[i], cost->amount[i])) {
			lease_give_back(used, cost, i);
			return false;
		}
	return true;
}

/* Beyond the cap: asks, and takes what was given, until that or a refusal succeeds. */
static __attribute__((noinline, cold)) int lease_grow(struct ledger *ledger, unsigned device,
						      const struct cost *cost,
						      struct ledger_refusal *ret_refusal)
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_grow_request request;
	struct proto_grow_reply answer;
	const char *obstacle = NULL;
	uint64_t until = clock_now_ns() + LEASE_PATIENCE_MS * 1000000ull;
	sigset_t signals;
	int result = 0, saved = errno;

	signals_hold(&signals); /* a handler that calls a verb must not wait for this lock */
	lock_acquire(&lease->asking);
	for (unsigned round = 0; !lease_take(lease, device, cost); round++) {
		grow_request_begin(ledger, device, cost, 0, &request);
		result = round < ROUNDS_LEAST || clock_now_ns() < until ?
				 grow_request_send(ledger, &request, &answer, &obstacle) :
				 -EPROTO;
		if (result < 0 || !lease_number_is_valid(&answer, result)) {
			result = grow_request_unanswered(&request, result, obstacle, ret_refusal);
			break;
		}
		if (answer.lease != PROTO_NO_LEASE &&
		    !lease_find_caps(lease, device, answer.lease)) {
			result = grow_request_unanswered(&request, -ENOMEM,
							 "no memory to map the lease", ret_refusal);
			break;
		}
		if (result == PROTO_REFUSED &&
		    !grow_reply_is_outdated(lease, device, cost, &request)) {
			grow_reply_describe(ledger, &answer, result, ret_refusal);
			result = LEDGER_REFUSED;
			break;
		}
		if (result == PROTO_TOLERATED &&
		    lease_take_granted(lease, device, cost, &request)) {
			grow_reply_describe(ledger, &answer, result, ret_refusal);
			result = LEDGER_TOLERATED;
			break;
		}
		result = 0;
	}
	grow_request_end(ledger);
	lock_release(&lease->asking);
	signals_let_go(&signals);
	errno = saved;
	return result;
}

static int lease_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			bool forced, struct ledger_refusal *ret_refusal)
{
	if (__builtin_expect(lease_take(&ledger->lease, device, cost), 1))
		return 0;
	if (!forced)
		return lease_grow(ledger, device, cost, ret_refusal);
	lease_add(&ledger->lease, device, cost);
	return 0;
}

static void lease_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	lease_give_back(ledger->lease.usage->row[device].used, cost, cost->count);
}

/* The collector hears of deaths itself, and sweeps before it refuses. */
int lease_release_dead(struct ledger *ledger)
{
	return 0;
}

void lease_defer(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	lease_add(&ledger->lease, device, cost);
}

uint64_t lease_used(struct ledger *ledger, enum kind kind)
{
	uint64_t used = 0;

	for (unsigned device = 0; device < lease_devices(); device++)
		used += __atomic_load_n(&ledger->lease.usage->row[device].used[kind],
					__ATOMIC_RELAXED);
	return used;
}

const char *lease_tenant(const struct ledger *ledger)
{
	return ledger->lease.tenant;
}

enum mode lease_mode(const struct ledger *ledger)
{
	/* In one order with additions to `used`; see ledger_charge_tolerated. */
	uint32_t mode = ledger->lease.table ?
				__atomic_load_n(&ledger->lease.table->mode, __ATOMIC_SEQ_CST) :
				__atomic_load_n(&ledger->lease.mode, __ATOMIC_RELAXED);

	return mode < MODES ? mode : MODE_ENFORCE;
}

/* The end of the process tells the collector, and surely. */
void lease_close(struct ledger *ledger)
{
}

const struct ledger_backing lease_backing =
	LEASE_BACKING(TRANSPORT_LEASE, lease_charge, lease_refund);
