/* SPDX-License-Identifier: MIT */
/*
 * Looking at an embedded ledger from outside, read-only and without its lock:
 * for tests and tools. Counts only what living processes hold, as if the dead
 * had been given back already.
 */
#ifndef LEDGER_VIEW_H
#define LEDGER_VIEW_H

#include "base/problem.h"
#include "ledger/ledger.h"

struct layout_header;
struct layout_slot;

enum { LEDGER_VIEW_NAME = 256 };

struct ledger_view {
	struct layout_header *header;
	uint64_t view;
	char name[LEDGER_VIEW_NAME]; /* of the file below /dev/shm, without the number of a second one */
};

/* name: below /dev/shm; NULL for that of our user. -errno, with a sentence in problem. */
int ledger_view_open(struct ledger_view *view, const char *name, char problem[PROBLEM_SIZE]);
void ledger_view_close(struct ledger_view *view);

/* Number of the device of that name, or -1. */
int ledger_view_device(const struct ledger_view *view, const char *name);

/* What living processes hold: of the device, or of all with device -1. */
uint64_t ledger_view_used(const struct ledger_view *view, int device, enum kind kind);

/* The living process in the seat: its slot and number, or NULL. Seats count up from 0. */
const struct layout_slot *ledger_view_seat(const struct ledger_view *view, unsigned seat,
					   pid_t *ret_pid);
/* What one process holds on one device. */
uint64_t ledger_view_held(const struct layout_slot *slot, unsigned device, enum kind kind);
unsigned ledger_view_seats(const struct ledger_view *view);

/* The name of a device, "" if the number is free; "-" for objects of no known device. */
const char *ledger_view_device_name(const struct ledger_view *view, unsigned device);
/* The limit of all processes together: on the device, or in total with device -1. */
uint64_t ledger_view_limit(const struct ledger_view *view, int device, enum kind kind);
/* What a process tells about itself. */
const struct tallies *ledger_view_tallies(const struct layout_slot *slot);
const struct gauges *ledger_view_gauges(const struct layout_slot *slot, unsigned device);

#endif
