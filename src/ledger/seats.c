/* SPDX-License-Identifier: MIT */
/* The places of processes in the shared file: taking one, and giving back what the dead held. */
#include <errno.h>
#include <string.h>

#include "ledger/embedded.h"
#include "ledger/shmfile.h"

/* Locked. The slot is only read: until the seat is free it stays the truth. */
static void seat_release(struct layout_header *header, unsigned seat)
{
	struct layout_slot *slot = layout_slot(header, seat);

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		const struct layout_slot_device *row = &slot->device[device];

		for (int kind = 0; kind < KINDS_COUNTED && slot->devices >> device & 1; kind++) {
			uint64_t summed = row->charged[kind] - row->noticed[kind];

			assert(summed <= header->device[device].used[kind] &&
			       summed <= header->used[kind]);
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

static bool seat_is_of(const struct identity *a, const struct identity *b)
{
	return a->view && a->view == b->view && a->pid == b->pid && a->start == b->start;
}

/* /proc is asked without the lock; under it, the seat must still be the same process's. */
int embedded_release_dead(struct ledger *ledger)
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
		if (embedded_lock(ledger) < 0)
			break;
		still = seat_identity(seat);
		if (seat->state == SEAT_TAKEN && seat_is_of(&who, &still)) {
			seat_release(header, i);
			STORE(header->reaped, header->reaped + 1);
			released++;
		}
		embedded_unlock(ledger);
	}
	if (released)
		log_write(ledger->log, LOG_INFO, "gave back what %d ended process%s held", released,
			  released == 1 ? "" : "es");
	errno = saved;
	return released;
}

int seat_take(struct ledger *ledger, int fd)
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
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		if (device == LEDGER_NAMELESS || header->device[device].name[0])
			ledger->embedded.slot->devices |= 1ull << device;
	ledger->gauges = (char *)&ledger->embedded.slot->device[0].gauges;
	__atomic_store_n(&ledger->tallies, &ledger->embedded.slot->tallies, __ATOMIC_RELEASE);
	return 0;
}

void seats_release_own(struct ledger *ledger, const struct identity *self)
{
	for (unsigned i = 0; i < ledger->embedded.header->seats_high; i++) {
		struct identity who = seat_identity(&ledger->embedded.header->seat[i]);

		if (ledger->embedded.header->seat[i].state == SEAT_TAKEN && seat_is_of(&who, self))
			seat_release(ledger->embedded.header, i);
	}
}
