/* SPDX-License-Identifier: MIT */
/* The observer's side of the embedded ledger; see view.h. */
#include "ledger/view.h"

#include <stdio.h>
#include <string.h>

#include "ledger/identity.h"
#include "ledger/layout.h"
#include "ledger/shmfile.h"

int ledger_view_open(struct ledger_view *view, const char *name, char problem[PROBLEM_SIZE])
{
	char usual[SHMFILE_NAME];
	struct shmfile file;
	int result;

	name = name ? name : shmfile_default_name(false, usual);
	snprintf(view->name, sizeof(view->name), "%s", name + (name[0] == '/'));
	result = shmfile_observe(&file, view->name, problem);

	if (result < 0)
		return result;
	shmfile_close(&file);
	view->header = file.header;
	view->view = identity_self().view;
	return 0;
}

void ledger_view_close(struct ledger_view *view)
{
	shmfile_unmap(view->header);
}

/* Acquire: the first letter is stored last, so who sees it must see the others. */
static const char *view_device_name(const struct ledger_view *view, unsigned device)
{
	const char *name = view->header->device[device].name;

	return __atomic_load_n(&name[0], __ATOMIC_ACQUIRE) ? name : "";
}

int ledger_view_device(const struct ledger_view *view, const char *name)
{
	for (int device = 1; device < DEVICES_MAX; device++)
		if (!strcmp(view_device_name(view, (unsigned)device), name))
			return device;
	return -1;
}

unsigned ledger_view_seats(const struct ledger_view *view)
{
	unsigned high = __atomic_load_n(&view->header->seats_high, __ATOMIC_RELAXED);

	return high < LAYOUT_SEATS ? high : LAYOUT_SEATS;
}

const struct layout_slot *ledger_view_seat(const struct ledger_view *view, unsigned seat,
					   pid_t *ret_pid)
{
	const struct layout_seat *row = &view->header->seat[seat];
	struct identity who;

	/* Acquire: pairs with the release store of the state in seat_take. */
	if (__atomic_load_n(&row->state, __ATOMIC_ACQUIRE) != SEAT_TAKEN)
		return NULL;
	who = (struct identity){ (pid_t)row->pid, row->start, row->view };
	if (identity_is_dead(&who, view->view))
		return NULL;
	if (ret_pid)
		*ret_pid = who.pid;
	return layout_slot(view->header, seat);
}

uint64_t ledger_view_held(const struct layout_slot *slot, unsigned device, enum kind kind)
{
	const struct layout_slot_device *row = &slot->device[device];
	uint64_t returned = __atomic_load_n(&row->returned[kind], __ATOMIC_ACQUIRE);

	return __atomic_load_n(&row->charged[kind], __ATOMIC_RELAXED) - returned;
}

uint64_t ledger_view_used(const struct ledger_view *view, int device, enum kind kind)
{
	uint64_t used = 0;

	for (unsigned seat = 0; seat < ledger_view_seats(view); seat++) {
		const struct layout_slot *slot = ledger_view_seat(view, seat, NULL);

		for (int row = 0; slot && row < DEVICES_MAX; row++)
			if (device < 0 || device == row)
				used += ledger_view_held(slot, (unsigned)row, kind);
	}
	return used;
}

const char *ledger_view_device_name(const struct ledger_view *view, unsigned device)
{
	return device == LEDGER_NAMELESS ? "-" : view_device_name(view, device);
}

uint64_t ledger_view_limit(const struct ledger_view *view, int device, enum kind kind)
{
	const uint64_t *limit = device < 0 ? view->header->limit : view->header->device[device].limit;

	return __atomic_load_n(&limit[kind], __ATOMIC_RELAXED);
}

const struct tallies *ledger_view_tallies(const struct layout_slot *slot)
{
	return &slot->tallies;
}

const struct gauges *ledger_view_gauges(const struct layout_slot *slot, unsigned device)
{
	return &slot->device[device].gauges;
}
