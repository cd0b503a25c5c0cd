/* SPDX-License-Identifier: MIT */
/*
 * Fair shares; see fair_shares.h. One operation is used three times: divide an amount by weight, so
 * that each tenant gets at least LEAST and at most MOST of it (weighted max-min fairness). It is
 * exact in integers, for amounts of 64 bits.
 */
#include "collector/fair_shares.h"

#include <errno.h>

typedef unsigned __int128 wide;

/* An amount for each unit of weight: amount / weight. */
struct fair_level {
	uint64_t amount;
	uint32_t weight;
};

/* One tenant in a division. */
struct fair_part {
	uint64_t least, most;
	uint64_t given;
	uint32_t weight;
};

struct fair_division {
	struct fair_part part[FAIR_TENANTS_MAX];
	unsigned count;
	uint32_t random; /* chooses pivots; begins the same each time, so that results are the same */
	/* Numbers of the parts for which the search has not yet found what they get. */
	uint16_t open[FAIR_TENANTS_MAX];
	unsigned open_count;
	/* Numbers of the parts that get an amount in proportion to their weight. */
	uint16_t proportional[FAIR_TENANTS_MAX];
	unsigned proportional_count;
	uint64_t key[FAIR_TENANTS_MAX]; /* their remainders, with their numbers */
};

enum { KEY_NUMBER = FAIR_TENANTS_MAX - 1 }; /* bits of a key */
_Static_assert((FAIR_TENANTS_MAX & KEY_NUMBER) == 0, "a number must be some bits of a key");

static uint64_t amount_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t amount_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static unsigned division_pick(struct fair_division *division, unsigned count)
{
	division->random = division->random * 1664525u + 1013904223u;
	return (unsigned)(((uint64_t)division->random * count) >> 32);
}

/* What a part gets at a level, times the weight of the level. */
static wide part_at_level(const struct fair_part *part, const struct fair_level *level)
{
	wide amount = (wide)level->amount * part->weight;
	wide least = (wide)part->least * level->weight, most = (wide)part->most * level->weight;

	return amount < least ? least : amount > most ? most : amount;
}

/* Whether a part has that amount at a level, or at a lower one. */
static bool part_reaches(const struct fair_part *part, uint64_t amount,
			 const struct fair_level *level)
{
	return (wide)amount * level->weight <= (wide)level->amount * part->weight;
}

static bool part_reaches_below(const struct fair_part *part, uint64_t amount,
			       const struct fair_level *level)
{
	return (wide)amount * level->weight < (wide)level->amount * part->weight;
}

/*
 * Finds the level at which all parts add up to AMOUNT. It works like the search for a median: a
 * pivot among the levels at which some part begins or ceases to grow, then only the parts for which
 * the answer is still open. Each step settles half of what is open on average, so that the time is
 * linear; to sort all levels takes longer (decision 87). The parts that get their least or
 * their most are written. Returns what is left for the proportional ones, and their weights' sum.
 */
static uint64_t division_find_level(struct fair_division *division, uint64_t amount,
				    uint64_t *ret_weight)
{
	struct fair_level low = { 0, 1 }, high = { UINT64_MAX, 1 }; /* low <= level < high */
	wide settled = 0;
	uint64_t weight = 0;

	while (division->open_count) {
		unsigned pick = division_pick(division, division->open_count);
		struct fair_part *part = &division->part[division->open[pick]];
		/* The least of an open part is reached below high, its most above low. */
		struct fair_level pivot = {
			part_reaches(part, part->least, &low) ? part->most : part->least,
			part->weight,
		};
		wide sum = settled * pivot.weight + (wide)weight * pivot.amount;
		unsigned open = 0;

		for (unsigned i = 0; i < division->open_count; i++)
			sum += part_at_level(&division->part[division->open[i]], &pivot);
		if (sum <= (wide)amount * pivot.weight)
			low = pivot;
		else
			high = pivot;
		for (unsigned i = 0; i < division->open_count; i++) {
			uint16_t number = division->open[i];

			part = &division->part[number];
			if (part_reaches(part, part->most, &low)) {
				settled += part->given = part->most;
			} else if (!part_reaches_below(part, part->least, &high)) {
				settled += part->given = part->least;
			} else if (part_reaches(part, part->least, &low) &&
				   !part_reaches_below(part, part->most, &high)) {
				division->proportional[division->proportional_count++] = number;
				weight += part->weight;
			} else {
				division->open[open++] = number;
			}
		}
		division->open_count = open;
	}
	*ret_weight = weight;
	return amount - (uint64_t)settled;
}

/* Gives one unit more to the parts with the COUNT largest keys, which are brought to the front as
 * by quicksort, but only on the side where the boundary is. */
static void division_round_up(struct fair_division *division, unsigned count)
{
	uint64_t *key = division->key;
	unsigned begin = 0, end = division->proportional_count;

	while (begin < count && count < end) {
		unsigned pick = begin + division_pick(division, end - begin), front = begin;
		uint64_t pivot = key[pick];

		key[pick] = key[end - 1];
		for (unsigned i = begin; i < end - 1; i++) {
			uint64_t one = key[i];

			if (one > pivot) {
				key[i] = key[front];
				key[front++] = one;
			}
		}
		key[end - 1] = key[front];
		key[front] = pivot;
		if (front < count)
			begin = front + 1;
		else
			end = front;
	}
	for (unsigned i = 0; i < count; i++)
		division->part[KEY_NUMBER - (key[i] & KEY_NUMBER)].given++;
}

/*
 * Divides AMOUNT: the same level for all, but no part gets less than its least or more than its
 * most. Proportional parts get whole units; the units that are left go to the largest remainders,
 * and among equal ones to the first. If the least are more than the amount, each gets its least.
 * Returns what is left when each has its most.
 */
static uint64_t division_divide(struct fair_division *division, uint64_t amount)
{
	wide least = 0, most = 0;
	uint64_t weight, rest, left;

	for (unsigned i = 0; i < division->count; i++) {
		least += division->part[i].least;
		most += division->part[i].most;
	}
	if (amount <= least || amount >= most) {
		for (unsigned i = 0; i < division->count; i++)
			division->part[i].given = amount <= least ? division->part[i].least :
								    division->part[i].most;
		return amount > most ? amount - (uint64_t)most : 0;
	}
	division->random = 1;
	division->proportional_count = 0;
	division->open_count = division->count;
	for (unsigned i = 0; i < division->count; i++)
		division->open[i] = (uint16_t)i;
	left = rest = division_find_level(division, amount, &weight);
	for (unsigned i = 0; i < division->proportional_count; i++) {
		uint16_t number = division->proportional[i];
		wide scaled = (wide)rest * division->part[number].weight;
		uint64_t whole = (uint64_t)(scaled / weight);

		division->part[number].given = whole;
		left -= whole;
		/* Less than the sum of the weights, which is less than 2^42. */
		division->key[i] = (uint64_t)(scaled - (wide)whole * weight) * FAIR_TENANTS_MAX +
				   (KEY_NUMBER - number);
	}
	division_round_up(division, (unsigned)left);
	return 0;
}

/* What is reserved for each tenant. Guarantees that are more than the capacity together, which a
 * policy should not have, count in proportion. */
static void guarantees_reserve(const struct fair_tenant *tenants, unsigned count, uint64_t capacity,
			       uint64_t *ret_guarantees)
{
	wide sum = 0;

	for (unsigned i = 0; i < count; i++) {
		ret_guarantees[i] = amount_min(tenants[i].guarantee, tenants[i].limit);
		sum += ret_guarantees[i];
	}
	if (sum <= capacity)
		return;
	for (unsigned i = 0; i < count; i++)
		ret_guarantees[i] = (uint64_t)((wide)ret_guarantees[i] * capacity / sum);
}

static uint64_t tenant_demand(const struct fair_tenant *tenant, uint64_t most)
{
	return amount_min(amount_max(tenant->demand, tenant->used), most);
}

static enum fair_reason tenant_reason(const struct fair_tenant *tenant, uint64_t guarantee,
				      const struct fair_share *share)
{
	if (tenant->used > share->share)
		return FAIR_DRAINING;
	if (share->effective < share->share)
		return FAIR_WAITING;
	if (share->share >= tenant->limit)
		return FAIR_LIMIT;
	if (guarantee && share->share == guarantee)
		return FAIR_GUARANTEE;
	return share->share >= tenant_demand(tenant, UNLIMITED) ? FAIR_DEMAND : FAIR_SHARE;
}

int fair_shares(const struct fair_tenant *tenants, unsigned count, uint64_t capacity, bool pressure,
		struct fair_share *ret_shares)
{
	struct fair_division division;
	uint64_t guarantee[FAIR_TENANTS_MAX], left;

	if (count > FAIR_TENANTS_MAX)
		return -E2BIG;
	if (!pressure || capacity == UNLIMITED) {
		for (unsigned i = 0; i < count; i++)
			ret_shares[i] = (struct fair_share){ tenants[i].limit, tenants[i].limit,
							     FAIR_CONFIGURED };
		return 0;
	}
	guarantees_reserve(tenants, count, capacity, guarantee);

	/* Shares: up to the demand, but never less than the guarantee. */
	division.count = count;
	for (unsigned i = 0; i < count; i++) {
		struct fair_part *part = &division.part[i];

		part->weight = tenants[i].weight ? tenants[i].weight : 1;
		part->least = guarantee[i];
		part->most = amount_max(guarantee[i],
					tenant_demand(&tenants[i],
						      amount_min(tenants[i].limit, capacity)));
	}
	left = division_divide(&division, capacity);
	for (unsigned i = 0; i < count; i++)
		ret_shares[i].share = division.part[i].given;

	/* If all demand is met, the rest is divided as well, so that the next request finds room. */
	if (left) {
		for (unsigned i = 0; i < count; i++) {
			division.part[i].least = 0;
			division.part[i].most =
				amount_min(tenants[i].limit, capacity) - ret_shares[i].share;
		}
		division_divide(&division, left);
		for (unsigned i = 0; i < count; i++)
			ret_shares[i].share += division.part[i].given;
	}

	/* Limits in force: nothing is taken from a tenant above its share, so that the others share
	 * what it leaves, and get the rest as it gives back. */
	for (unsigned i = 0; i < count; i++) {
		division.part[i].least = amount_max(guarantee[i], tenants[i].used);
		division.part[i].most = amount_max(ret_shares[i].share, tenants[i].used);
	}
	division_divide(&division, capacity);
	for (unsigned i = 0; i < count; i++) {
		struct fair_share *share = &ret_shares[i];

		share->effective = amount_min(share->share, division.part[i].given);
		share->reason = tenant_reason(&tenants[i], guarantee[i], share);
	}
	return 0;
}

uint64_t fair_unreserved(const struct fair_tenant *tenants, unsigned count, uint64_t capacity)
{
	wide taken = 0;

	if (capacity == UNLIMITED)
		return UNLIMITED;
	for (unsigned i = 0; i < count; i++)
		taken += amount_max(tenants[i].used,
				    amount_min(tenants[i].guarantee, tenants[i].limit));
	return taken < capacity ? capacity - (uint64_t)taken : 0;
}
