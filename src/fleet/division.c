/* SPDX-License-Identifier: MIT */
/*
 * The division of a quota; see division.h. Targets are max-min fair: no host gets more than it
 * wants while another one has less than it wants and less than that one.
 */
#include "fleet/division.h"

#include <stdlib.h>

#include "output/memory.h"

enum {
	HEADROOM_PART = 4, /* of the demand, that a host gets on top of it, */
	HEADROOM_LEAST = 4, /* but at least so much */
	MOVE_PART = 16,	   /* smaller changes of a target are not worth a round through the host */
};

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool division_gives_back(const struct fleet_record *before, const struct fleet_record *after)
{
	return after->share < before->share;
}

static void share_lower(struct division *division, struct fleet_record *record, uint64_t share)
{
	if (share >= record->share)
		return;
	division->free += (int64_t)(record->share - share);
	record->share = share;
}

/* What is certainly not used any more. Objects above the target stay on the account of the host until
 * they are destroyed. */
static void record_settle(struct division *division, struct division_host *host)
{
	struct fleet_record *record = &host->record;

	if (host->alive && host->confirmed) {
		share_lower(division, record, larger_of(record->target, host->held));
		record->kept = record->floor;
	} else if (!host->alive && !division->keeps_lost) {
		/* The lease has ended: the host allows itself only what it keeps, and can hold more
		 * only of what it had made before. */
		share_lower(division, record, larger_of(record->kept, host->held));
		record->target = smaller_of(record->floor, record->share);
	}
}

struct division_wish {
	struct division_host *host;
	uint64_t want;
	uint64_t target;
};

static int wish_compare(const void *left, const void *right)
{
	const struct division_wish *a = left, *b = right;

	return (a->want > b->want) - (a->want < b->want);
}

/* Fills from the host that wants least; the level rises as hosts leave a part of theirs. */
static void wishes_fill(struct division_wish *wishes, size_t count, uint64_t amount)
{
	qsort(wishes, count, sizeof(*wishes), wish_compare);
	for (size_t i = 0; i < count; i++) {
		wishes[i].target = smaller_of(wishes[i].want, amount / (count - i));
		amount -= wishes[i].target;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t more = amount / (count - i);

		wishes[i].target += more;
		amount -= more;
	}
}

/* Whether some host cannot have what it wants, or has more than there is. */
static bool division_is_needed(const struct division *division, const struct division_wish *wishes,
			       size_t count, uint64_t amount, uint64_t guarantee)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		const struct fleet_record *record = &wishes[i].host->record;

		if (record->target < wishes[i].want || record->floor != guarantee)
			return true;
		sum += record->target;
	}
	return sum > amount || division->free < 0;
}

/* Small changes are left out. */
static bool target_moves(const struct division_wish *wish, uint64_t guarantee)
{
	const struct fleet_record *record = &wish->host->record;
	uint64_t change = larger_of(wish->target, record->target) -
			  smaller_of(wish->target, record->target);

	return change > record->target / MOVE_PART || record->floor != guarantee ||
	       record->share > record->target;
}

static void target_lower(const struct division_wish *wish, uint64_t guarantee)
{
	struct fleet_record *record = &wish->host->record;

	if (record->target > wish->target)
		record->target = wish->target;
	if (record->floor > smaller_of(guarantee, record->target))
		record->floor = smaller_of(guarantee, record->target);
}

/* Up to a limit that is at most the target. */
static void target_raise(struct division *division, const struct division_wish *wish,
			 uint64_t limit, uint64_t guarantee)
{
	struct fleet_record *record = &wish->host->record;
	uint64_t target = smaller_of(wish->target, limit);

	if (target > record->share && division->free > 0) {
		uint64_t more = smaller_of(target - record->share, (uint64_t)division->free);

		record->share += more;
		division->free -= (int64_t)more;
	}
	record->target = larger_of(record->target, smaller_of(target, record->share));
	record->floor = larger_of(record->floor, smaller_of(guarantee, record->target));
	record->kept = larger_of(record->kept, record->floor);
}

static void targets_set(struct division *division, struct division_wish *wishes, size_t count,
			uint64_t guarantee)
{
	/* Unless more is handed out than there is. */
	for (size_t i = 0; i < count && division->free >= 0; i++)
		if (!target_moves(&wishes[i], guarantee))
			wishes[i].target = wishes[i].host->record.target;
	for (size_t i = 0; i < count; i++)
		target_lower(&wishes[i], guarantee);
	for (size_t i = 0; i < count; i++)
		target_raise(division, &wishes[i], guarantee, guarantee);
	for (size_t i = 0; i < count; i++)
		target_raise(division, &wishes[i], UINT64_MAX, guarantee);
}

void division_round(struct division *division, struct division_host *hosts, size_t count)
{
	struct division_wish *wishes = memory_need(calloc(count + 1, sizeof(*wishes)));
	uint64_t amount = division->quota, guarantee;
	size_t alive = 0;

	for (size_t i = 0; i < count; i++) {
		record_settle(division, &hosts[i]);
		if (hosts[i].alive)
			wishes[alive++].host = &hosts[i];
		else
			amount -= smaller_of(amount, hosts[i].record.share);
	}
	guarantee = alive ? smaller_of(division->guarantee, amount / alive) : 0;
	for (size_t i = 0; i < alive; i++) {
		uint64_t demand = smaller_of(wishes[i].host->demand, division->quota);

		wishes[i].want = larger_of(
			guarantee, demand + larger_of(demand / HEADROOM_PART, HEADROOM_LEAST));
	}
	if (division_is_needed(division, wishes, alive, amount, guarantee)) {
		wishes_fill(wishes, alive, amount);
		targets_set(division, wishes, alive, guarantee);
	}
	free(wishes);
}
