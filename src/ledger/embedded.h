/* SPDX-License-Identifier: MIT */
/*
 * What the files of the embedded backing share; private to the room. embedded.c charges and
 * refunds, sums.c keeps the sums over processes, seats.c says who has a place in the file,
 * embedded_join.c takes one.
 */
#ifndef LEDGER_EMBEDDED_H
#define LEDGER_EMBEDDED_H

#include <assert.h>
#include <pthread.h>

#include "ledger/backing.h"
#include "ledger/identity.h"
#include "ledger/layout.h"

/* Words that are looked at without the lock. */
#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

extern const struct ledger_backing embedded_backing;

int embedded_device(struct ledger *ledger, const char *name);
void deferred_charge_all(struct ledger *ledger);

/* ---- sums.c; all of it under the lock */

void sums_rebuild(struct layout_header *header);

/* Takes what was returned of a kind out of the sums. Locked. */
static inline void sums_notice(struct layout_header *header, struct layout_slot *slot,
			       unsigned device, unsigned kind)
{
	struct layout_slot_device *row = &slot->device[device];
	/* Acquire: what was made room for is really gone. */
	uint64_t returned = __atomic_load_n(&row->returned[kind], __ATOMIC_ACQUIRE);
	uint64_t amount = returned - row->noticed[kind];

	/* A sum is never below what it is the sum of. */
	assert(amount <= slot->used[kind] && slot->used[kind] <= header->used[kind]);
	assert(amount <= header->device[device].used[kind]);
	row->noticed[kind] = returned;
	slot->used[kind] -= amount;
	header->used[kind] -= amount;
	header->device[device].used[kind] -= amount;
}

/* The same for everybody, before anybody is refused. */
void sums_notice_all(struct layout_header *header, unsigned kind);

/* Adds amount, which may be "negative" modulo 2^64, wherever one kind is summed. */
void sums_add(struct layout_header *header, struct layout_slot *slot, unsigned device,
	      unsigned kind, uint64_t amount);

/* ---- seats.c */

/* Takes a seat whose slot has memory behind it; without a descriptor of the file one that
 * somebody has had before. Locked. */
int seat_take(struct ledger *ledger, int fd);

/* What this process held before it called exec, it holds no more. Locked. */
void seats_release_own(struct ledger *ledger, const struct identity *self);

int embedded_release_dead(struct ledger *ledger);

/* ---- the lock of the file */

/* After a lock that was not free at once: waits while others make progress; -ETIMEDOUT when the
 * holder stands still. */
int embedded_lock_wait(struct ledger *ledger, int result);

/* Locked: with something to book first, or without a seat since we have left. */
int embedded_lock_unusual(struct ledger *ledger);

static inline void embedded_unlock(struct ledger *ledger)
{
	pthread_mutex_unlock(&ledger->embedded.header->lock);
}

static inline int embedded_lock(struct ledger *ledger)
{
	int result = pthread_mutex_trylock(&ledger->embedded.header->lock);

	if (__builtin_expect(result != 0, 0)) {
		result = embedded_lock_wait(ledger, result);
		if (result < 0)
			return result;
	}
	STORE(ledger->embedded.header->turns, ledger->embedded.header->turns + 1);
	if (__builtin_expect(LOAD(ledger->embedded.unusual), 0))
		return embedded_lock_unusual(ledger);
	return 0;
}

#endif
