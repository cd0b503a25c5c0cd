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
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ledger/backing.h"
#include "ledger/identity.h"
#include "ledger/layout.h"
#include "ledger/shmfile.h"

/* How long a holder may stand still (stopped, frozen) before we go on without. */
enum { STUCK_SECONDS = 2 };

/* Two pointers into one structure: keep them two, rather than one and a long sum. */
#define SEPARATE(pointer) __asm__("" : "+r"(pointer))

/* Words that are looked at without the lock. */
#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

static void sums_rebuild(struct layout_header *header)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		header->used[kind] = 0;
		for (unsigned device = 0; device < LEDGER_DEVICES; device++)
			header->device[device].used[kind] = 0;
	}
	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		struct layout_slot *slot = layout_slot(header, seat);

		if (header->seat[seat].state != SEAT_TAKEN)
			continue;
		memset(slot->used, 0, sizeof(slot->used));
		for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
			struct layout_slot_device *row = &slot->device[device];

			for (int kind = 0; kind < KIND_COUNT && slot->devices >> device & 1;
			     kind++) {
				uint64_t returned = LOAD(row->returned[kind]);
				uint64_t held = row->charged[kind] - returned;

				row->noticed[kind] = returned;
				slot->used[kind] += held;
				header->used[kind] += held;
				header->device[device].used[kind] += held;
			}
		}
	}
	STORE(header->rebuilds, header->rebuilds + 1);
}

/* Takes what was returned of a kind out of the sums. Locked. */
static inline void notice(struct layout_header *header, struct layout_slot *slot, unsigned device,
			  unsigned kind)
{
	struct layout_slot_device *row = &slot->device[device];
	/* Acquire: what was made room for is really gone. */
	uint64_t returned = __atomic_load_n(&row->returned[kind], __ATOMIC_ACQUIRE);
	uint64_t amount = returned - row->noticed[kind];

	row->noticed[kind] = returned;
	slot->used[kind] -= amount;
	header->used[kind] -= amount;
	header->device[device].used[kind] -= amount;
}

/* The same for everybody, before anybody is refused. Locked. */
static void notice_all(struct layout_header *header, unsigned kind)
{
	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		struct layout_slot *slot = layout_slot(header, seat);

		if (header->seat[seat].state != SEAT_TAKEN)
			continue;
		for (unsigned device = 0; device < LEDGER_DEVICES; device++)
			if (slot->devices >> device & 1)
				notice(header, slot, device, kind);
	}
}

/* Adds amount, which may be "negative" modulo 2^64, wherever one kind is summed. */
static void book(struct layout_header *header, struct layout_slot *slot, unsigned device,
		 unsigned kind, uint64_t amount)
{
	slot->used[kind] += amount;
	slot->device[device].charged[kind] += amount;
	header->used[kind] += amount;
	header->device[device].used[kind] += amount;
}

static void deferred_book(struct ledger *ledger)
{
	__atomic_fetch_and(&ledger->embedded.unusual, ~(uint32_t)LEDGER_DEFERRED, __ATOMIC_ACQUIRE);
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		for (int kind = 0; kind < KIND_COUNT; kind++) {
			uint64_t amount = __atomic_exchange_n(
				&ledger->embedded.deferred[device][kind], 0, __ATOMIC_RELAXED);

			if (amount)
				book(ledger->embedded.header, ledger->embedded.slot, device,
				     (unsigned)kind, amount);
		}
}

/* Waits while others make progress; -ETIMEDOUT when the holder stands still. */
static __attribute__((noinline)) int wait_for_lock(struct ledger *ledger, int result)
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

static inline void unlock(struct ledger *ledger)
{
	pthread_mutex_unlock(&ledger->embedded.header->lock);
}

static int seat_take(struct ledger *ledger, int fd);

/* Locked: with something to book first, or without a seat since we have left. */
static __attribute__((noinline, cold)) int lock_unusual(struct ledger *ledger)
{
	int result = 0;

	if (LOAD(ledger->embedded.unusual) & LEDGER_LEFT)
		result = seat_take(ledger, -1);
	if (result < 0) {
		unlock(ledger);
		return -ESHUTDOWN;
	}
	__atomic_fetch_and(&ledger->embedded.unusual, ~(uint32_t)LEDGER_LEFT, __ATOMIC_RELEASE);
	deferred_book(ledger);
	return 0;
}

static inline int lock(struct ledger *ledger)
{
	int result = pthread_mutex_trylock(&ledger->embedded.header->lock);

	if (__builtin_expect(result != 0, 0)) {
		result = wait_for_lock(ledger, result);
		if (result < 0)
			return result;
	}
	STORE(ledger->embedded.header->turns, ledger->embedded.header->turns + 1);
	if (__builtin_expect(LOAD(ledger->embedded.unusual), 0))
		return lock_unusual(ledger);
	return 0;
}

static bool over(uint64_t used, uint64_t wanted, uint64_t limit)
{
	return wanted && (used > limit || wanted > limit - used);
}

/* Whether one kind of a cost goes over a limit. Locked. */
static bool refused(const struct ledger *ledger, unsigned device, unsigned kind, uint64_t wanted,
		    struct ledger_refusal *ret)
{
	const struct layout_header *header = ledger->embedded.header;
	const struct {
		enum ledger_scope scope;
		uint64_t used, limit;
	} levels[] = {
		{ SCOPE_PROCESS, ledger->embedded.slot->used[kind], ledger->limits->process[kind] },
		{ SCOPE_DEVICE, header->device[device].used[kind],
		  header->device[device].limit[kind] },
		{ SCOPE_HOST, header->used[kind], header->limit[kind] },
	};

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (over(levels[i].used, wanted, levels[i].limit)) {
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
static __attribute__((noinline, cold)) int charge_carefully(struct ledger *ledger, unsigned device,
							    const struct cost *cost, unsigned from,
							    bool forced,
							    struct ledger_refusal *ret_refusal)
{
	struct layout_header *header = ledger->embedded.header;
	struct layout_slot *slot = ledger->embedded.slot;

	for (unsigned i = from; i < cost->count; i++) {
		notice_all(header, cost->kind[i]);
		if (!forced &&
		    refused(ledger, device, cost->kind[i], cost->amount[i], ret_refusal)) {
			while (i-- > 0) /* all or nothing */
				book(header, slot, device, cost->kind[i], -cost->amount[i]);
			return LEDGER_REFUSED;
		}
		book(header, slot, device, cost->kind[i], cost->amount[i]);
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
	int result = lock(ledger);

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
			result = charge_carefully(ledger, device, cost, i, forced, ret_refusal);
			break;
		}
		own->noticed[kind] = returned;
		own->charged[kind] += cost->amount[i];
		slot->used[kind] = in_process;
		sums->used[kind] = on_device;
		header->used[kind] = on_host;
	}
	unlock(ledger);
	return result;
}

/* What was charged only in our own memory is given back there; the rest as always. */
static __attribute__((noinline, cold)) void refund_deferred(struct ledger *ledger, unsigned device,
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
		refund_deferred(ledger, device, cost);
		return;
	}
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&own->returned[cost->kind[i]], cost->amount[i],
				   __ATOMIC_RELEASE);
}

/* Locked. The slot is only read: until the seat is free it stays the truth. */
static void seat_release(struct layout_header *header, unsigned seat)
{
	struct layout_slot *slot = layout_slot(header, seat);

	for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
		const struct layout_slot_device *row = &slot->device[device];

		for (int kind = 0; kind < KIND_COUNT && slot->devices >> device & 1; kind++) {
			uint64_t summed = row->charged[kind] - row->noticed[kind];

			header->used[kind] -= summed;
			header->device[device].used[kind] -= summed;
		}
	}
	STORE(header->seat[seat].state, SEAT_FREE);
}

static struct identity seat_identity(const struct layout_seat *seat)
{
	return (struct identity){ (pid_t)LOAD(seat->pid), LOAD(seat->start), LOAD(seat->view) };
}

static bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->view && a->view == b->view && a->pid == b->pid && a->start == b->start;
}

/* /proc is asked without the lock; under it, the seat must still be the same process's. */
static int embedded_release_dead(struct ledger *ledger)
{
	struct layout_header *header = ledger->embedded.header;
	unsigned high = LOAD(header->seats_high);
	int released = 0, saved = errno;

	for (unsigned i = 0; i < high && i < LAYOUT_SEATS; i++) {
		struct layout_seat *seat = &header->seat[i];
		struct identity who = seat_identity(seat), still;

		if (LOAD(seat->state) != SEAT_TAKEN ||
		    !identity_is_dead(&who, ledger->embedded.view))
			continue;
		if (lock(ledger) < 0)
			break;
		still = seat_identity(seat);
		if (seat->state == SEAT_TAKEN && identity_equal(&who, &still)) {
			seat_release(header, i);
			STORE(header->reaped, header->reaped + 1);
			released++;
		}
		unlock(ledger);
	}
	if (released)
		log_write(ledger->log, LOG_INFO, "gave back what %d ended process%s held", released,
			  released == 1 ? "" : "es");
	errno = saved;
	return released;
}

static uint64_t embedded_used(struct ledger *ledger, enum kind kind)
{
	bool locked = lock(ledger) == 0;
	uint64_t held = 0;

	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		held += ledger->embedded.slot->device[device].charged[kind] -
			LOAD(ledger->embedded.slot->device[device].returned[kind]);
	if (locked)
		unlock(ledger);
	return held;
}

/* The first letter last: until it is there the row is free, whoever died meanwhile. */
static void device_name(struct layout_device *row, const char *name)
{
	strncpy(row->name + 1, name[0] ? name + 1 : "", sizeof(row->name) - 2);
	__atomic_store_n(&row->name[0], name[0], __ATOMIC_RELEASE);
}

static int embedded_device(struct ledger *ledger, const char *name)
{
	struct layout_header *header = ledger->embedded.header;
	int result = lock(ledger);

	if (result < 0)
		return result;
	result = -ENOSPC;
	for (int device = 1; device < LEDGER_DEVICES; device++) {
		struct layout_device *row = &header->device[device];

		if (!row->name[0])
			device_name(row, name);
		if (!strncmp(row->name, name, sizeof(row->name) - 1)) {
			result = device;
			break;
		}
	}
	if (result > 0 && ledger->embedded.slot)
		ledger->embedded.slot->devices |= 1ull << result;
	unlock(ledger);
	return result;
}

static void embedded_close(struct ledger *ledger)
{
	bool holds = false;

	if (lock(ledger) < 0)
		return;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		for (unsigned device = 0; device < LEDGER_DEVICES; device++)
			if (ledger->embedded.slot->devices >> device & 1)
				notice(ledger->embedded.header, ledger->embedded.slot, device,
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
	unlock(ledger);
}

static const char *embedded_device_name(const struct ledger *ledger, unsigned device)
{
	return ledger->embedded.header->device[device].name;
}

/* Without a collector there is one tenant, and the environment says everything. */
static const char *embedded_tenant(const struct ledger *ledger)
{
	return "default";
}

static enum ledger_mode embedded_mode(const struct ledger *ledger)
{
	return MODE_ENFORCE;
}

static const struct ledger_backing embedded_backing = {
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

/* The host's limit of a kind: the first that names one sets it. A default is
 * only a default: it gives way to the first that was meant. Locked. */
static void host_limit_propose(struct ledger *ledger, int kind)
{
	struct layout_header *header = ledger->embedded.header;
	uint64_t wanted = ledger->limits->host[kind], bit = 1ull << kind;
	bool meant = !(ledger->limits->host_defaults & bit);

	if (wanted == SIZE_UNLIMITED)
		return;
	if (header->limit[kind] != SIZE_UNLIMITED && !(meant && header->defaults & bit))
		return;
	/* In this order a death in between leaves at most a value that still gives way. */
	__atomic_store_n(&header->defaults, header->defaults | bit, __ATOMIC_RELEASE);
	__atomic_store_n(&header->limit[kind], wanted, __ATOMIC_RELEASE);
	if (meant)
		__atomic_store_n(&header->defaults, header->defaults & ~bit, __ATOMIC_RELEASE);
}

/* Says which of our wishes were not granted. Not under the lock: a log may be slow. */
static void limit_report(const struct ledger *ledger, const char *scope, int kind, uint64_t wanted,
			 uint64_t stands)
{
	if (wanted != SIZE_UNLIMITED && wanted != stands)
		log_write(ledger->log, LOG_WARN,
			  "%s limit %s=%llu is set already by an earlier process; "
			  "it stays, and %llu is not used",
			  scope, kind_rows[kind].name, (unsigned long long)stands,
			  (unsigned long long)wanted);
}

static int limits_propose(struct ledger *ledger)
{
	const struct ledger_limits *limits = ledger->limits;
	struct layout_device *rows[LEDGER_DEVICES];
	int result;

	for (unsigned i = 0; i < limits->devices; i++) {
		result = embedded_device(ledger, limits->device[i].name);
		if (result < 0 && result != -ENOSPC)
			return result;
		rows[i] = result < 0 ? NULL : &ledger->embedded.header->device[result];
		if (!rows[i])
			log_write(ledger->log, LOG_WARN,
				  "device %s: no room in the table of %d devices; "
				  "its limits are not used",
				  limits->device[i].name, LEDGER_DEVICES);
	}
	result = lock(ledger);
	if (result < 0)
		return result;
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		host_limit_propose(ledger, kind);
		for (unsigned i = 0; i < limits->devices; i++)
			if (rows[i] && rows[i]->limit[kind] == SIZE_UNLIMITED)
				STORE(rows[i]->limit[kind], limits->device[i].limit[kind]);
	}
	unlock(ledger);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (!(limits->host_defaults >> kind & 1))
			limit_report(ledger, "host", kind, limits->host[kind],
				     LOAD(ledger->embedded.header->limit[kind]));
		for (unsigned i = 0; i < limits->devices; i++)
			if (rows[i])
				limit_report(ledger, rows[i]->name, kind,
					     limits->device[i].limit[kind],
					     LOAD(rows[i]->limit[kind]));
	}
	return 0;
}

/* Takes a seat whose slot has memory behind it; without a descriptor of the file one that
 * somebody has had before. Locked. */
static int seat_take(struct ledger *ledger, int fd)
{
	struct layout_header *header = ledger->embedded.header;
	unsigned i = 0;
	int result;

	while (i < header->seats_high && header->seat[i].state == SEAT_TAKEN)
		i++;
	if (i == LAYOUT_SEATS || (fd < 0 && i == header->seats_high))
		return -EUSERS;
	result = fd < 0 ? 0 :
			  shmfile_allocate(fd, layout_slot_offset(i), sizeof(struct layout_slot));
	if (result < 0)
		return result;
	memset(layout_slot(header, i), 0, sizeof(struct layout_slot));
	STORE(header->seat[i].pid, ledger->embedded.pid);
	STORE(header->seat[i].start, ledger->embedded.start);
	STORE(header->seat[i].view, ledger->embedded.view);
	STORE(header->seat[i].generation, header->seat[i].generation + 1);
	/* Release: who sees the seat taken sees whose it is, and a clean slot. */
	__atomic_store_n(&header->seat[i].state, SEAT_TAKEN, __ATOMIC_RELEASE);
	if (i == header->seats_high)
		STORE(header->seats_high, i + 1);
	ledger->embedded.seat = i;
	ledger->embedded.slot = layout_slot(header, i);
	/* All that have a name so far: a forked child may go on with one that its parent named. */
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		if (device == LEDGER_NAMELESS || header->device[device].name[0])
			ledger->embedded.slot->devices |= 1ull << device;
	ledger->gauges = (char *)&ledger->embedded.slot->device[0].gauges;
	__atomic_store_n(&ledger->tallies, &ledger->embedded.slot->tallies, __ATOMIC_RELEASE);
	return 0;
}

/* What this process held before it called exec, it holds no more. Locked. */
static void own_seats_release(struct ledger *ledger, const struct identity *self)
{
	for (unsigned i = 0; i < ledger->embedded.header->seats_high; i++) {
		struct identity who = seat_identity(&ledger->embedded.header->seat[i]);

		if (ledger->embedded.header->seat[i].state == SEAT_TAKEN &&
		    identity_equal(&who, self))
			seat_release(ledger->embedded.header, i);
	}
}

static int join(struct ledger *ledger, int fd, const struct identity *self)
{
	int result = lock(ledger);

	if (result < 0)
		return result;
	own_seats_release(ledger, self);
	unlock(ledger);

	embedded_release_dead(ledger);

	result = limits_propose(ledger);
	if (result < 0)
		return result;
	result = lock(ledger);
	if (result < 0)
		return result;
	result = seat_take(ledger, fd);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) /* who looks now sees exact sums */
		notice_all(ledger->embedded.header, kind);
	unlock(ledger);
	return result;
}

static int file_join(struct ledger *ledger, const struct ledger_options *options,
		     const struct identity *self, char problem[LEDGER_PROBLEM])
{
	struct shmfile file;
	int result = shmfile_open(&file, options, problem);

	if (result < 0)
		return result;
	ledger->embedded.header = file.header;
	result = join(ledger, file.fd, self);
	shmfile_close(&file);
	if (result < 0) {
		snprintf(problem, LEDGER_PROBLEM, "shared memory /dev/shm/%s: %s", options->name,
			 result == -EUSERS    ? "every seat is taken by a living process" :
			 result == -ETIMEDOUT ? "the process that holds its lock stands still" :
						strerror(-result));
		shmfile_unmap(ledger->embedded.header);
	}
	return result;
}

/* What the limits say holds for this process at least. */
static int private_join(struct ledger *ledger, const struct identity *self)
{
	struct shmfile memory;
	int result = shmfile_private(&memory);

	if (result < 0)
		return result;
	ledger->embedded.header = memory.header;
	return join(ledger, memory.fd, self);
}

int embedded_open(struct ledger *ledger, const struct ledger_options *options,
		  char problem[LEDGER_PROBLEM])
{
	struct identity self = identity_self();
	int result;

	ledger->embedded.pid = self.pid;
	ledger->embedded.start = self.start;
	ledger->embedded.view = self.view;
	result = file_join(ledger, options, &self, problem);
	if (result < 0 && !options->closed && private_join(ledger, &self) == 0)
		result = LEDGER_ALONE;
	if (result < 0)
		return result;
	ledger->backing = &embedded_backing;
	ledger->gauges_stride = sizeof(ledger->embedded.slot->device[0]);
	return result;
}
