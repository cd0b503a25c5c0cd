/* SPDX-License-Identifier: MIT */
/*
 * The embedded backing: all processes of one user share a file below
 * /dev/shm. Charging, refunding and giving back what the dead held, under one
 * robust lock. How the file comes into being and is checked is in shmfile.c.
 *
 * Why SIGKILL at any instruction is harmless: under the lock a process writes
 * its own slot, sums in the header, and seats of the dead. If it dies there,
 * the next holder is told (EOWNERDEAD) and makes the sums anew from the slots
 * of the seats that are taken; the dead process's own slot, perhaps half
 * written, goes away with its seat.
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

#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define ADD(word, amount) STORE(word, (word) + (amount))

static void sums_rebuild(struct layout_header *header)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		STORE(header->used[kind], 0);
		for (unsigned device = 0; device < LEDGER_DEVICES; device++)
			STORE(header->device[device].used[kind], 0);
	}
	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		struct layout_slot *slot = layout_slot(header, seat);

		if (header->seat[seat].state != SEAT_TAKEN)
			continue;
		for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
			if (!(slot->devices >> device & 1))
				continue;
			for (int kind = 0; kind < KIND_COUNT; kind++) {
				ADD(header->used[kind], slot->device[device].used[kind]);
				ADD(header->device[device].used[kind],
				    slot->device[device].used[kind]);
			}
		}
	}
	ADD(header->rebuilds, 1);
}

/* Adds amount, which may be "negative" modulo 2^64, wherever one kind is summed. */
static inline void book(struct layout_header *header, struct layout_slot *slot, unsigned device,
			unsigned kind, uint64_t amount)
{
	ADD(slot->used[kind], amount);
	ADD(slot->device[device].used[kind], amount);
	ADD(header->used[kind], amount);
	ADD(header->device[device].used[kind], amount);
}

static void deferred_book(struct ledger *ledger)
{
	if (!__atomic_exchange_n(&ledger->deferred_any, 0, __ATOMIC_ACQUIRE))
		return;
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		for (int kind = 0; kind < KIND_COUNT; kind++) {
			int64_t amount = __atomic_exchange_n(&ledger->deferred[device][kind], 0,
							     __ATOMIC_RELAXED);

			if (amount) {
				STORE(ledger->slot->devices, ledger->slot->devices | 1ull << device);
				book(ledger->header, ledger->slot, device, (unsigned)kind,
				     (uint64_t)amount);
			}
		}
}

/* Waits while others make progress; -ETIMEDOUT when the holder stands still. */
static __attribute__((noinline)) int lock_wait(struct ledger *ledger, int result)
{
	struct layout_header *header = ledger->header;

	while (result == EBUSY) {
		uint64_t turns = LOAD(header->turns);
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += STUCK_SECONDS;
		result = pthread_mutex_timedlock(&header->lock, &until);
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

static inline int lock(struct ledger *ledger)
{
	int result = pthread_mutex_trylock(&ledger->header->lock);

	if (__builtin_expect(result != 0, 0)) {
		result = lock_wait(ledger, result);
		if (result < 0)
			return result;
	}
	ADD(ledger->header->turns, 1);
	if (__builtin_expect(LOAD(ledger->deferred_any), 0) && ledger->slot)
		deferred_book(ledger);
	return 0;
}

static inline void unlock(struct ledger *ledger)
{
	pthread_mutex_unlock(&ledger->header->lock);
}

static inline bool over(uint64_t used, uint64_t wanted, uint64_t limit)
{
	return used > limit || wanted > limit - used;
}

static bool find_refusal(const struct ledger *ledger, unsigned device, const struct cost *cost,
			 struct ledger_refusal *ret)
{
	const struct layout_header *header = ledger->header;

	for (unsigned i = 0; i < cost->count; i++) {
		unsigned kind = cost->kind[i];
		uint64_t wanted = cost->amount[i];
		uint64_t used, limit;
		enum ledger_scope scope;

		if (!wanted)
			continue;
		if (over(used = ledger->slot->used[kind], wanted,
			 limit = ledger->limits->process[kind]))
			scope = SCOPE_PROCESS;
		else if (over(used = header->device[device].used[kind], wanted,
			      limit = header->device[device].limit[kind]))
			scope = SCOPE_DEVICE;
		else if (over(used = header->used[kind], wanted, limit = header->limit[kind]))
			scope = SCOPE_HOST;
		else
			continue;
		*ret = (struct ledger_refusal){ scope, kind, used, wanted, limit };
		return true;
	}
	return false;
}

static int embedded_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			   bool forced, struct ledger_refusal *ret_refusal)
{
	struct layout_header *header = ledger->header;
	struct layout_slot *slot = ledger->slot;
	int result = lock(ledger);

	if (result < 0)
		return result;
	if (!forced && find_refusal(ledger, device, cost, ret_refusal)) {
		unlock(ledger);
		return LEDGER_REFUSED;
	}
	STORE(slot->devices, slot->devices | 1ull << device);
	for (unsigned i = 0; i < cost->count; i++) {
		unsigned kind = cost->kind[i];

		book(header, slot, device, kind, cost->amount[i]);
		if (slot->used[kind] > slot->peak[kind])
			STORE(slot->peak[kind], slot->used[kind]);
		if (header->used[kind] > header->peak[kind])
			STORE(header->peak[kind], header->used[kind]);
	}
	unlock(ledger);
	return 0;
}

static int embedded_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	int result = lock(ledger);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < cost->count; i++)
		book(ledger->header, ledger->slot, device, cost->kind[i], -cost->amount[i]);
	unlock(ledger);
	return 0;
}

/* Locked. The slot is only read: until the seat is free it stays the truth. */
static void seat_release(struct layout_header *header, unsigned seat)
{
	struct layout_slot *slot = layout_slot(header, seat);

	for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
		if (!(slot->devices >> device & 1))
			continue;
		for (int kind = 0; kind < KIND_COUNT; kind++) {
			ADD(header->used[kind], -slot->device[device].used[kind]);
			ADD(header->device[device].used[kind], -slot->device[device].used[kind]);
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
	return a->pid == b->pid && a->start == b->start && a->view == b->view;
}

/* /proc is asked without the lock; under it, the seat must still be the same. */
static int embedded_release_dead(struct ledger *ledger)
{
	struct layout_header *header = ledger->header;
	unsigned high = LOAD(header->seats_high);
	int released = 0;

	for (unsigned i = 0; i < high && i < LAYOUT_SEATS; i++) {
		struct layout_seat *seat = &header->seat[i];
		uint32_t generation = LOAD(seat->generation);
		struct identity who = seat_identity(seat);

		if (LOAD(seat->state) != SEAT_TAKEN || !identity_is_dead(&who, ledger->view))
			continue;
		if (lock(ledger) < 0)
			break;
		if (seat->state == SEAT_TAKEN && seat->generation == generation) {
			seat_release(header, i);
			ADD(header->reaped, 1);
			released++;
		}
		unlock(ledger);
	}
	if (released)
		log_write(ledger->log, LOG_INFO, "gave back what %d ended process%s held", released,
			  released == 1 ? "" : "es");
	return released;
}

static int embedded_device(struct ledger *ledger, const char *name)
{
	struct layout_header *header = ledger->header;
	int result = lock(ledger);

	if (result < 0)
		return result;
	result = -ENOSPC;
	for (int device = 1; device < LEDGER_DEVICES; device++) {
		struct layout_device *row = &header->device[device];

		if (!row->name[0]) /* strncpy pads with NUL: a full name stays terminated */
			strncpy(row->name, name, sizeof(row->name) - 1);
		if (!strncmp(row->name, name, sizeof(row->name) - 1)) {
			result = device;
			break;
		}
	}
	unlock(ledger);
	return result;
}

static void embedded_close(struct ledger *ledger)
{
	bool holds = false;

	if (lock(ledger) < 0)
		return;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		holds |= ledger->slot->used[kind] != 0;
	if (!holds)
		STORE(ledger->header->seat[ledger->seat].state, SEAT_FREE);
	unlock(ledger);
}

static const struct ledger_backing embedded_backing = {
	.charge = embedded_charge,
	.refund = embedded_refund,
	.release_dead = embedded_release_dead,
	.device = embedded_device,
	.close = embedded_close,
};

/* One host or device limit: unset ones take our value, set ones stay. */
static void limit_propose(const struct ledger *ledger, const char *scope, uint64_t *word, int kind,
			  uint64_t wanted)
{
	if (wanted == SIZE_UNLIMITED || *word == wanted)
		return;
	if (*word == SIZE_UNLIMITED)
		STORE(*word, wanted);
	else
		log_write(ledger->log, LOG_WARN,
			  "%s limit %s=%llu is set already by an earlier process; "
			  "it stays, and %llu is not used", scope, kind_rows[kind].name,
			  (unsigned long long)*word, (unsigned long long)wanted);
}

static int limits_propose(struct ledger *ledger)
{
	const struct ledger_limits *limits = ledger->limits;
	int device_of[LEDGER_DEVICES];
	int result;

	for (unsigned i = 0; i < limits->devices; i++) {
		device_of[i] = embedded_device(ledger, limits->device[i].name);
		if (device_of[i] < 0)
			return device_of[i];
	}
	result = lock(ledger);
	if (result < 0)
		return result;
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		limit_propose(ledger, "host", &ledger->header->limit[kind], kind,
			      limits->host[kind]);
		for (unsigned i = 0; i < limits->devices; i++)
			limit_propose(ledger, limits->device[i].name,
				      &ledger->header->device[device_of[i]].limit[kind], kind,
				      limits->device[i].limit[kind]);
	}
	unlock(ledger);
	return 0;
}

/* Takes a seat whose slot has memory behind it. Locked. */
static int seat_take(struct ledger *ledger, int fd, const struct identity *self)
{
	struct layout_header *header = ledger->header;
	unsigned i = 0;
	int result;

	while (i < header->seats_high && header->seat[i].state == SEAT_TAKEN)
		i++;
	if (i == LAYOUT_SEATS)
		return -EUSERS;
	result = shmfile_allocate(fd, layout_slot_offset(i), sizeof(struct layout_slot));
	if (result < 0)
		return result;
	memset(layout_slot(header, i), 0, sizeof(struct layout_slot));
	STORE(header->seat[i].pid, self->pid);
	STORE(header->seat[i].start, self->start);
	STORE(header->seat[i].view, self->view);
	ADD(header->seat[i].generation, 1);
	/* Release: who sees the seat taken sees whose it is, and a clean slot. */
	__atomic_store_n(&header->seat[i].state, SEAT_TAKEN, __ATOMIC_RELEASE);
	if (i == header->seats_high)
		STORE(header->seats_high, i + 1);
	ledger->seat = i;
	ledger->slot = layout_slot(header, i);
	return 0;
}

/* What this process held before it called exec, it holds no more. Locked. */
static void own_seats_release(struct ledger *ledger, const struct identity *self)
{
	for (unsigned i = 0; i < ledger->header->seats_high; i++) {
		struct identity who = seat_identity(&ledger->header->seat[i]);

		if (ledger->header->seat[i].state == SEAT_TAKEN && identity_equal(&who, self))
			seat_release(ledger->header, i);
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
	result = seat_take(ledger, fd, self);
	unlock(ledger);
	return result;
}

int embedded_open(struct ledger *ledger, const struct ledger_options *options,
		  char problem[LEDGER_PROBLEM])
{
	struct identity self = identity_self();
	struct shmfile file;
	int result = shmfile_open(&file, options, problem);

	if (result < 0)
		return result;
	ledger->header = file.header;
	ledger->view = self.view;
	result = join(ledger, file.fd, &self);
	shmfile_close(&file);
	if (result < 0) {
		snprintf(problem, LEDGER_PROBLEM, "shared memory /dev/shm/%s: %s", options->name,
			 result == -EUSERS    ? "every seat is taken by a living process" :
			 result == -ETIMEDOUT ? "the process that holds its lock stands still" :
						strerror(-result));
		shmfile_unmap(ledger->header);
		return result;
	}
	ledger->backing = &embedded_backing;
	return 0;
}
