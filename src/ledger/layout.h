/* SPDX-License-Identifier: MIT */
/*
 * The shared file of the embedded ledger, as it lies in memory.
 *
 *   header | seats (who) | slots (how much), a slot per seat, page-aligned
 *
 * A slot is the truth about one process; the totals in the header are only
 * sums over slots and are rebuilt from them when a process died holding the
 * lock. Seats and slots never move. Every field says who writes it; "locked"
 * means: whoever holds the lock. Observers in other processes read without it:
 * each word is aligned and never torn, but two words may be of two moments.
 */
#ifndef LEDGER_LAYOUT_H
#define LEDGER_LAYOUT_H

#include <pthread.h>
#include <stdint.h>

#include "terms/kinds.h"
#include "ledger/ledger.h"
#include "terms/tallies.h"

#define LAYOUT_MAGIC 0x6c616d6472746e69u /* "intrdmal" */

enum {
	LAYOUT_VERSION = 3,
	LAYOUT_SEATS = 1024,
	LAYOUT_PAGE = 4096,
};

/* Written by the creator before the file has a name; never changed. */
struct layout_signature {
	uint64_t magic;
	uint32_t version;
	uint32_t word_bits; /* a 32-bit process has another pthread_mutex_t */
	uint32_t seats;
	uint32_t devices;
	uint32_t kinds;
	uint32_t slot_size;
	uint64_t kinds_signature;
	uint64_t file_size;
};

struct layout_device {
	char name[NAME_SIZE]; /* locked, once; "" = free; 0 is the nameless device */
	uint64_t limit[KINDS_COUNTED];    /* locked, once, by the first process that sets it */
	uint64_t used[KINDS_COUNTED];     /* locked; sum over the slots */
};

enum seat_state { SEAT_FREE, SEAT_TAKEN };

struct layout_seat {
	uint32_t state;	     /* locked; stored last, when taken and when freed */
	uint32_t generation; /* locked; counts the owners of this seat */
	int64_t pid;	     /* locked, while free */
	uint64_t start;	     /* locked, while free */
	uint64_t view;	     /* locked, while free */
};

struct layout_header {
	struct layout_signature signature;
	_Alignas(64) pthread_mutex_t lock; /* robust, process-shared */
	uint64_t turns;	     /* locked; +1 for each holder: progress for those who wait */
	uint64_t rebuilds;   /* locked; holders that died */
	uint64_t reaped;     /* locked; seats given back for the dead */
	uint64_t defaults;   /* locked; bit k: limit[k] is a default that no process requested */
	uint32_t seats_high; /* locked; seats ever taken, only grows */
	_Alignas(64) uint64_t limit[KINDS_COUNTED]; /* locked, by the first that names one */
	uint64_t used[KINDS_COUNTED];		 /* locked; sum over the slots */
	_Alignas(64) struct layout_device device[DEVICES_MAX];
	_Alignas(64) struct layout_seat seat[LAYOUT_SEATS];
};

/*
 * What a process holds on a device is charged - returned. Charging is done under
 * the lock, since it asks limits; returning is not, so that it costs nothing and
 * cannot be held up. The sums follow when somebody who holds the lock notices:
 * the owner at its next charge, anybody before a refusal. Until then they are too
 * high by returned - noticed, never too low.
 */
struct layout_slot_device {
	uint64_t charged[KINDS_COUNTED]; /* the owner, locked */
	uint64_t returned[KINDS_COUNTED]; /* the owner's threads, atomically (release), without the
					  lock; only grows */
	uint64_t noticed[KINDS_COUNTED]; /* locked; how much of returned has left the sums */
	struct gauges gauges;	      /* without the lock */
};

struct layout_slot {
	uint64_t used[KINDS_COUNTED]; /* locked; sum of charged - noticed over the devices */
	struct tallies tallies;	   /* without the lock */
	uint64_t devices;	   /* the owner, locked; bit d: device[d] may be used */
	struct layout_slot_device device[DEVICES_MAX];
} __attribute__((aligned(LAYOUT_PAGE)));

#define LAYOUT_HEADER_SIZE                                                                         \
	((sizeof(struct layout_header) + LAYOUT_PAGE - 1) / LAYOUT_PAGE * LAYOUT_PAGE)
#define LAYOUT_FILE_SIZE (LAYOUT_HEADER_SIZE + LAYOUT_SEATS * sizeof(struct layout_slot))

_Static_assert(sizeof(struct layout_signature) == 48, "a signature is compared as bytes");
_Static_assert(sizeof(struct layout_seat) == 32, "two seats per cache line");
_Static_assert(sizeof(struct layout_slot) % LAYOUT_PAGE == 0, "a slot is allocated by pages");
_Static_assert(DEVICES_MAX <= 64, "devices are bits of a word");
_Static_assert(KINDS_COUNTED <= 64, "kinds are bits of a word");

static inline off_t layout_slot_offset(unsigned seat)
{
	return (off_t)(LAYOUT_HEADER_SIZE + seat * sizeof(struct layout_slot));
}

static inline struct layout_slot *layout_slot(struct layout_header *header, unsigned seat)
{
	return (struct layout_slot *)((char *)header + layout_slot_offset(seat));
}

#endif
