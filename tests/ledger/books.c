/* SPDX-License-Identifier: MIT */
/* The file under test and its comparison; see books.h. */
#include "books.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "ledger/shmfile.h"

struct ledger_limits books_limits;

static const struct log no_log = { .level = LOG_OFF };
static char name[48];
static const struct ledger_options options = {
	.name = name,
	.mode = 0600,
	.limits = &books_limits,
	.log = &no_log,
};

void books_init(const char *test)
{
	snprintf(name, sizeof(name), "ri_%s_%d", test, (int)getpid());
	ledger_limits_clear(&books_limits);
	books_remove();
	atexit(books_remove);
}

const char *books_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	return path;
}

void books_remove(void)
{
	unlink(books_path());
}

bool books_join(struct ledger *ledger)
{
	char problem[PROBLEM_SIZE] = "";
	int result = ledger_open(ledger, &options, problem);

	return CHECK(result == 0, "ledger_open: %d, %s", result, problem);
}

void books_leave(struct ledger *ledger)
{
	ledger_close(ledger);
	shmfile_unmap(ledger->embedded.header);
}

/* What the sums should hold of one device; what was returned leaves them when it is noticed. */
static uint64_t slots_sum(struct layout_header *header, unsigned device, unsigned kind)
{
	uint64_t sum = 0;

	for (unsigned seat = 0; seat < header->seats_high; seat++) {
		const struct layout_slot_device *row = &layout_slot(header, seat)->device[device];

		if (header->seat[seat].state == SEAT_TAKEN)
			sum += row->charged[kind] - row->noticed[kind];
	}
	return sum;
}

static unsigned kind_drift(struct layout_header *header, unsigned kind)
{
	uint64_t total = 0;
	unsigned drift = 0;

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		uint64_t sum = slots_sum(header, device, kind);
		uint64_t said = header->device[device].used[kind];

		total += sum;
		drift += !CHECK(said == sum, "%s of device %u: %lld, the slots hold %lld",
				kind_rows[kind].name, device, (long long)said, (long long)sum);
	}
	drift += !CHECK(header->used[kind] == total, "%s of the host: %lld, the slots hold %lld",
			kind_rows[kind].name, (long long)header->used[kind], (long long)total);
	return drift;
}

/* A slot's own sum, and what was noticed, returned and charged of a kind: in this order. */
static unsigned slot_drift(const struct layout_slot *slot, unsigned kind)
{
	uint64_t sum = 0;
	unsigned drift = 0;

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		const struct layout_slot_device *row = &slot->device[device];
		uint64_t noticed = row->noticed[kind], charged = row->charged[kind];
		uint64_t returned = __atomic_load_n(&row->returned[kind], __ATOMIC_RELAXED);

		sum += charged - noticed;
		drift += !CHECK(noticed <= returned && returned <= charged,
				"%s: charged %lld, returned %lld, noticed %lld",
				kind_rows[kind].name, (long long)charged, (long long)returned,
				(long long)noticed);
	}
	drift += !CHECK(slot->used[kind] == sum, "%s of a process: %lld, not %lld",
			kind_rows[kind].name, (long long)slot->used[kind], (long long)sum);
	return drift;
}

unsigned books_drift(struct layout_header *header)
{
	unsigned drift = 0;

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		drift += kind_drift(header, kind);
	for (unsigned seat = 0; seat < header->seats_high; seat++)
		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
			if (header->seat[seat].state == SEAT_TAKEN)
				drift += slot_drift(layout_slot(header, seat), kind);
	return drift;
}

unsigned books_seats_taken(const struct layout_header *header)
{
	unsigned taken = 0;

	for (unsigned seat = 0; seat < header->seats_high; seat++)
		taken += header->seat[seat].state == SEAT_TAKEN;
	return taken;
}
