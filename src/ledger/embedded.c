/* SPDX-License-Identifier: MIT */
/*
 * The embedded backing: all processes of one user share a file below
 * /dev/shm. Charging, and giving back what the dead held, under one robust
 * lock; refunding without it. How the file comes into being and is checked is in shmfile.c.
 *
 * Why SIGKILL at any instruction is harmless: under the lock a process writes
 * what it charged itself, sums, and seats of the dead. If it dies there, the
 * next holder is told (EOWNERDEAD) and makes all sums anew from what the taken
 * seats charged and returned; the dead process's own slot, perhaps half written,
 * goes away with its seat.
 */
#include "ledger/embedded.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* How long a holder may stand still (stopped, frozen) before we go on without. */
enum { STUCK_SECONDS = 2 };

/* Two pointers into one structure: keep them two, rather than one and a long sum. */
#define SEPARATE(pointer) __asm__("" : "+r"(pointer))

void deferred_charge_all(struct ledger *ledger)
{
	__atomic_fetch_and(&ledger->embedded.unusual, ~(uint32_t)LEDGER_DEFERRED, __ATOMIC_ACQUIRE);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		for (int kind = 0; kind < KINDS_COUNTED; kind++) {
			uint64_t amount = __atomic_exchange_n(
				&ledger->embedded.deferred[device][kind], 0, __ATOMIC_RELAXED);

			if (amount)
				sums_add(ledger->embedded.header, ledger->embedded.slot, device,
					 (unsigned)kind, amount);
		}
}

__attribute__((noinline)) int embedded_lock_wait(struct ledger *ledger, int result)
{
	struct layout_header *header = ledger->embedded.header;

	while (result == EBUSY) {
		uint64_t turns = LOAD(header->turns);
		struct timespec until;

#ifdef __SANITIZE_THREAD__ /* which does not know the other one */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += STUCK_SECONDS;
		result = pthread_mutex_timedlock(&header->lock, &until);
#else
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += STUCK_SECONDS;
		result = pthread_mutex_clocklock(&header->lock, CLOCK_MONOTONIC, &until);
#endif
		if (result == ETIMEDOUT && LOAD(header->turns) != turns)
			result = EBUSY;
	}
	if (result == EOWNERDEAD) {
		sums_rebuild(header);
		pthread_mutex_consistent(&header->lock);
		result = 0;
	}
	return -result;
}

__attribute__((noinline, cold)) int embedded_lock_unusual(struct ledger *ledger)
{
	int result = 0;

	if (LOAD(ledger->embedded.unusual) & LEDGER_LEFT)
		result = seat_take(ledger, -1);
	if (result < 0) {
		embedded_unlock(ledger);
		return -ESHUTDOWN;
	}
	__atomic_fetch_and(&ledger->embedded.unusual, ~(uint32_t)LEDGER_LEFT, __ATOMIC_RELEASE);
	deferred_charge_all(ledger);
	return 0;
}

static bool limit_is_exceeded(uint64_t used, uint64_t wanted, uint64_t limit)
{
	return wanted && (used > limit || wanted > limit - used);
}

/* Whether one kind of a cost goes over a limit. Locked. */
static bool limit_refuses(const struct ledger *ledger, unsigned device, unsigned kind,
			  uint64_t wanted, struct ledger_refusal *ret)
{
	const struct layout_header *header = ledger->embedded.header;
	const struct {
		enum limit_scope scope;
		uint64_t used, limit;
	} levels[] = {
		{ SCOPE_PROCESS, ledger->embedded.slot->used[kind], ledger->limits->process[kind] },
		{ SCOPE_DEVICE, header->device[device].used[kind],
		  header->device[device].limit[kind] },
		{ SCOPE_HOST, header->used[kind], header->limit[kind] },
	};

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (limit_is_exceeded(levels[i].used, wanted, levels[i].limit)) {
			*ret = (struct ledger_refusal){ .scope = levels[i].scope,
							.kind = kind,
							.used = levels[i].used,
							.wanted = wanted,
							.limit = levels[i].limit,
							.own = true };
			return true;
		}
	return false;
}

/* When a limit is in the way, or seems to be: from the given kind on. Locked. */
static __attribute__((noinline, cold)) int
embedded_charge_carefully(struct ledger *ledger, unsigned device, const struct cost *cost,
			  unsigned from, bool forced, struct ledger_refusal *ret_refusal)
{
	struct layout_header *header = ledger->embedded.header;
	struct layout_slot *slot = ledger->embedded.slot;

	for (unsigned i = from; i < cost->count; i++) {
		sums_notice_all(header, cost->kind[i]);
		if (!forced &&
		    limit_refuses(ledger, device, cost->kind[i], cost->amount[i], ret_refusal)) {
			while (i-- > 0) /* all or nothing */
				sums_add(header, slot, device, cost->kind[i], -cost->amount[i]);
			return LEDGER_REFUSED;
		}
		sums_add(header, slot, device, cost->kind[i], cost->amount[i]);
	}
	return 0;
}

static int embedded_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			   bool forced, struct ledger_refusal *ret_refusal)
{
	struct layout_header *header = ledger->embedded.header;
	struct layout_slot *slot;
	struct layout_device *sums = &header->device[device];
	struct layout_slot_device *own;
	const uint64_t *process_limit = ledger->limits->process;
	int result = embedded_lock(ledger);

	if (__builtin_expect(result < 0, 0))
		return result;
	slot = ledger->embedded.slot;
	own = &slot->device[device];
	SEPARATE(sums);
	SEPARATE(own);
	for (unsigned i = 0; i < cost->count; i++) {
		unsigned kind = cost->kind[i];
		uint64_t returned = LOAD(own->returned[kind]);
		uint64_t change = cost->amount[i] - (returned - own->noticed[kind]);
		uint64_t in_process = slot->used[kind] + change;
		uint64_t on_device = sums->used[kind] + change;
		uint64_t on_host = header->used[kind] + change;

		if (__builtin_expect(in_process > process_limit[kind] ||
					     on_device > sums->limit[kind] ||
					     on_host > header->limit[kind],
				     0)) {
			result = embedded_charge_carefully(ledger, device, cost, i, forced,
							   ret_refusal);
			break;
		}
		own->noticed[kind] = returned;
		own->charged[kind] += cost->amount[i];
		slot->used[kind] = in_process;
		sums->used[kind] = on_device;
		header->used[kind] = on_host;
	}
	embedded_unlock(ledger);
	return result;
}

/* What was charged only in our own memory is given back there; the rest as always. */
static __attribute__((noinline, cold)) void deferred_refund(struct ledger *ledger, unsigned device,
							    const struct cost *cost)
{
	struct layout_slot_device *own = &ledger->embedded.slot->device[device];

	if (LOAD(ledger->embedded.unusual) & LEDGER_LEFT)
		return;
	for (unsigned i = 0; i < cost->count; i++) {
		uint64_t *deferred = &ledger->embedded.deferred[device][cost->kind[i]];
		uint64_t there = LOAD(*deferred), taken;

		do {
			taken = there < cost->amount[i] ? there : cost->amount[i];
		} while (!__atomic_compare_exchange_n(deferred, &there, there - taken, true,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
		__atomic_fetch_add(&own->returned[cost->kind[i]], cost->amount[i] - taken,
				   __ATOMIC_RELEASE);
	}
}

static void embedded_defer(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&ledger->embedded.deferred[device][cost->kind[i]],
				   cost->amount[i], __ATOMIC_RELAXED);
	/* Release: whoever sees the flag sees the amounts. */
	__atomic_fetch_or(&ledger->embedded.unusual, LEDGER_DEFERRED, __ATOMIC_RELEASE);
}

static void embedded_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	struct layout_slot_device *own = &ledger->embedded.slot->device[device];

	/* Once the flag is down, its amounts are booked before anybody can notice. */
	if (__builtin_expect(__atomic_load_n(&ledger->embedded.unusual, __ATOMIC_ACQUIRE), 0)) {
		deferred_refund(ledger, device, cost);
		return;
	}
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&own->returned[cost->kind[i]], cost->amount[i],
				   __ATOMIC_RELEASE);
}

static uint64_t embedded_used(struct ledger *ledger, enum kind kind)
{
	bool locked = embedded_lock(ledger) == 0;
	uint64_t held = 0;

	for (unsigned device = 0; device < DEVICES_MAX; device++)
		held += ledger->embedded.slot->device[device].charged[kind] -
			LOAD(ledger->embedded.slot->device[device].returned[kind]);
	if (locked)
		embedded_unlock(ledger);
	return held;
}

/* The first letter last: until it is there the row is free, whoever died meanwhile. */
static void device_row_name(struct layout_device *row, const char *name)
{
	strncpy(row->name + 1, name[0] ? name + 1 : "", sizeof(row->name) - 2);
	__atomic_store_n(&row->name[0], name[0], __ATOMIC_RELEASE);
}

int embedded_device(struct ledger *ledger, const char *name)
{
	struct layout_header *header = ledger->embedded.header;
	int result = embedded_lock(ledger);

	if (result < 0)
		return result;
	result = -ENOSPC;
	for (int device = 1; device < DEVICES_MAX; device++) {
		struct layout_device *row = &header->device[device];

		if (!row->name[0])
			device_row_name(row, name);
		if (!strncmp(row->name, name, sizeof(row->name) - 1)) {
			result = device;
			break;
		}
	}
	if (result > 0 && ledger->embedded.slot)
		ledger->embedded.slot->devices |= 1ull << result;
	embedded_unlock(ledger);
	return result;
}

static void embedded_close(struct ledger *ledger)
{
	bool holds = false;

	if (embedded_lock(ledger) < 0)
		return;
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			if (ledger->embedded.slot->devices >> device & 1)
				sums_notice(ledger->embedded.header, ledger->embedded.slot, device,
					    kind);
		holds |= ledger->embedded.slot->used[kind] != 0;
	}
	if (!holds) {
		static struct tallies nobodys;

		/* A thread that is still at work must not write what is no longer ours. */
		__atomic_fetch_or(&ledger->embedded.unusual, LEDGER_LEFT, __ATOMIC_RELEASE);
		__atomic_store_n(&ledger->tallies, &nobodys, __ATOMIC_RELEASE);
		STORE(ledger->embedded.header->seat[ledger->embedded.seat].state, SEAT_FREE);
	}
	embedded_unlock(ledger);
}

static const char *embedded_device_name(const struct ledger *ledger, unsigned device)
{
	return ledger->embedded.header->device[device].name;
}

/* Without a collector there is one tenant without limits: all are of the program itself. */
static const char *embedded_tenant(const struct ledger *ledger)
{
	return "default";
}

static enum mode embedded_mode(const struct ledger *ledger)
{
	return MODE_ENFORCE;
}

const struct ledger_backing embedded_backing = {
	.transport = TRANSPORT_EMBEDDED,
	.charge = embedded_charge,
	.refund = embedded_refund,
	.release_dead = embedded_release_dead,
	.defer = embedded_defer,
	.used = embedded_used,
	.device = embedded_device,
	.device_name = embedded_device_name,
	.tenant = embedded_tenant,
	.mode = embedded_mode,
	.close = embedded_close,
};
