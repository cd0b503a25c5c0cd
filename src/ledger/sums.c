/* SPDX-License-Identifier: MIT */
/*
 * The sums over processes that the shared file keeps beside what each one charged and returned.
 * They can be made anew from that at any time.
 */
#include <string.h>

#include "ledger/embedded.h"

void sums_rebuild(struct layout_header *header)
{
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		header->used[kind] = 0;
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			header->device[device].used[kind] = 0;
	}
	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		struct layout_slot *slot = layout_slot(header, seat);

		if (header->seat[seat].state != SEAT_TAKEN)
			continue;
		memset(slot->used, 0, sizeof(slot->used));
		for (unsigned device = 0; device < DEVICES_MAX; device++) {
			struct layout_slot_device *row = &slot->device[device];

			for (int kind = 0; kind < KINDS_COUNTED && slot->devices >> device & 1;
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

void sums_notice_all(struct layout_header *header, unsigned kind)
{
	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		struct layout_slot *slot = layout_slot(header, seat);

		if (header->seat[seat].state != SEAT_TAKEN)
			continue;
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			if (slot->devices >> device & 1)
				sums_notice(header, slot, device, kind);
	}
}

void sums_add(struct layout_header *header, struct layout_slot *slot, unsigned device,
	      unsigned kind, uint64_t amount)
{
	slot->used[kind] += amount;
	slot->device[device].charged[kind] += amount;
	header->used[kind] += amount;
	header->device[device].used[kind] += amount;
}
