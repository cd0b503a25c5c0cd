/* SPDX-License-Identifier: MIT */
/* Fair shares: cases in numbers, and what is promised, over random cases. */
#include "collector/fair_shares.h"

#include <errno.h>

#include "harness.h"
#include "unit/fair_random.h"

typedef unsigned __int128 wide;

enum { MANY = FAIR_TENANTS_MAX, RANDOM_CASES = 100000 };

/* ---- cases in numbers */

struct row {
	struct fair_tenant tenant;
	uint64_t share, effective;
	enum fair_reason reason;
};

static void expect_rows(const char *name, const struct row *rows, unsigned count, uint64_t capacity)
{
	struct fair_tenant tenants[8] = { 0 };
	struct fair_share shares[8];

	for (unsigned i = 0; i < count; i++)
		tenants[i] = rows[i].tenant;
	CHECK(!fair_shares(tenants, count, capacity, true, shares));
	for (unsigned i = 0; i < count; i++) {
		CHECK(shares[i].share == rows[i].share, "%s, tenant %u: %llu", name, i,
		      (unsigned long long)shares[i].share);
		CHECK(shares[i].effective == rows[i].effective, "%s, tenant %u: %llu", name, i,
		      (unsigned long long)shares[i].effective);
		CHECK(shares[i].reason == rows[i].reason, "%s, tenant %u: %s", name, i,
		      fair_reason_names[shares[i].reason]);
	}
}

#define EXPECT(name, capacity, ...)                                                                \
	expect_rows(name, (const struct row[]){ __VA_ARGS__ },                                     \
		    sizeof((const struct row[]){ __VA_ARGS__ }) / sizeof(struct row), capacity)
#define WANTS(weight_, guarantee_, used_, demand_)                                                 \
	{                                                                                          \
		.weight = weight_, .guarantee = guarantee_, .limit = UNLIMITED, .used = used_,     \
		.demand = demand_                                                                  \
	}

static void weights(void)
{
	EXPECT("all want all", 400, { WANTS(1, 20, 0, 1000), 100, 100, FAIR_SHARE },
	       { WANTS(2, 20, 0, 1000), 200, 200, FAIR_SHARE },
	       { WANTS(1, 20, 0, 1000), 100, 100, FAIR_SHARE });
	EXPECT("all hold it", 400, { WANTS(1, 0, 100, 1000), 100, 100, FAIR_SHARE },
	       { WANTS(2, 0, 200, 1000), 200, 200, FAIR_SHARE },
	       { WANTS(1, 0, 100, 1000), 100, 100, FAIR_SHARE });
	EXPECT("one left", 400, { WANTS(1, 0, 100, 1000), 133, 133, FAIR_SHARE },
	       { WANTS(2, 0, 200, 1000), 267, 267, FAIR_SHARE },
	       { WANTS(1, 0, 0, 0), 0, 0, FAIR_DEMAND });
	EXPECT("one left that has a guarantee", 400,
	       { WANTS(1, 20, 100, 1000), 127, 127, FAIR_SHARE },
	       { WANTS(2, 20, 200, 1000), 253, 253, FAIR_SHARE },
	       { WANTS(1, 20, 0, 0), 20, 20, FAIR_GUARANTEE });
	EXPECT("it returns", 400, { WANTS(1, 20, 127, 1000), 100, 100, FAIR_DRAINING },
	       { WANTS(2, 20, 253, 1000), 200, 200, FAIR_DRAINING },
	       { WANTS(1, 20, 0, 1000), 100, 20, FAIR_WAITING });
	EXPECT("they give back", 400, { WANTS(1, 20, 117, 1000), 100, 100, FAIR_DRAINING },
	       { WANTS(2, 20, 200, 1000), 200, 200, FAIR_SHARE },
	       { WANTS(1, 20, 20, 1000), 100, 83, FAIR_WAITING });
	EXPECT("equal weights, the first have the remainder", 11,
	       { WANTS(1, 0, 0, 50), 4, 4, FAIR_SHARE }, { WANTS(1, 0, 0, 50), 4, 4, FAIR_SHARE },
	       { WANTS(1, 0, 0, 50), 3, 3, FAIR_SHARE });
}

static void lending(void)
{
	EXPECT("the idle share is lent", 400, { WANTS(1, 0, 0, 10), 10, 10, FAIR_DEMAND },
	       { WANTS(1, 0, 0, 1000), 390, 390, FAIR_SHARE });
	EXPECT("a guarantee is not", 400, { WANTS(1, 50, 0, 10), 50, 50, FAIR_GUARANTEE },
	       { WANTS(1, 0, 0, 1000), 350, 350, FAIR_SHARE });
	EXPECT("a guarantee above the share", 400,
	       { WANTS(1, 300, 0, 1000), 300, 300, FAIR_GUARANTEE },
	       { WANTS(1, 0, 0, 1000), 100, 100, FAIR_SHARE });
	EXPECT("room for all, and the rest by weight", 400,
	       { WANTS(1, 0, 100, 100), 150, 150, FAIR_DEMAND },
	       { WANTS(3, 0, 100, 100), 250, 250, FAIR_DEMAND });
}

/* A tenant that holds nothing and has no guarantee: how it begins. */
static void begins(void)
{
	EXPECT("free room: at once", 400, { WANTS(1, 0, 300, 300), 350, 350, FAIR_DEMAND },
	       { WANTS(1, 0, 0, 0), 50, 50, FAIR_DEMAND });
	EXPECT("none, and it has not asked", 400, { WANTS(1, 0, 400, 1000), 400, 400, FAIR_SHARE },
	       { WANTS(1, 0, 0, 0), 0, 0, FAIR_DEMAND });
	EXPECT("it was refused", 400, { WANTS(1, 0, 400, 1000), 399, 399, FAIR_DRAINING },
	       { WANTS(1, 0, 0, 1), 1, 0, FAIR_WAITING });
	EXPECT("the other gives back", 400, { WANTS(1, 0, 399, 1000), 399, 399, FAIR_SHARE },
	       { WANTS(1, 0, 0, 1), 1, 1, FAIR_DEMAND });
}

static void limits(void)
{
	struct fair_tenant tenants[] = {
		{ .weight = 1, .limit = 30, .demand = 1000 },
		{ .weight = 1, .limit = UNLIMITED, .demand = 1000, .guarantee = 10 },
	};
	struct fair_share shares[2];

	CHECK(!fair_shares(tenants, 2, 400, true, shares));
	CHECK(shares[0].effective == 30 && shares[0].reason == FAIR_LIMIT);
	CHECK(shares[1].effective == 370 && shares[1].reason == FAIR_SHARE);
	/* A limit that was cut below what is held. */
	tenants[0].used = 50;
	CHECK(!fair_shares(tenants, 2, 400, true, shares));
	CHECK(shares[0].effective == 30 && shares[0].reason == FAIR_DRAINING);
	CHECK(shares[1].share == 370 && shares[1].effective == 350);
	CHECK(shares[1].reason == FAIR_WAITING);
	/* A guarantee above the limit counts up to it. */
	tenants[0] = (struct fair_tenant){ .weight = 1, .limit = 30, .guarantee = 100 };
	CHECK(!fair_shares(tenants, 2, 400, true, shares));
	CHECK(shares[0].effective == 30 && shares[1].effective == 370);
	CHECK(fair_unreserved(tenants, 2, 400) == 360);
	/* No pressure, and no capacity that could be shared. */
	CHECK(!fair_shares(tenants, 2, 400, false, shares));
	CHECK(shares[0].effective == 30 && shares[0].reason == FAIR_CONFIGURED);
	CHECK(shares[1].effective == UNLIMITED && shares[1].reason == FAIR_CONFIGURED);
	CHECK(!fair_shares(tenants, 2, UNLIMITED, true, shares));
	CHECK(shares[1].effective == UNLIMITED && shares[1].reason == FAIR_CONFIGURED);
	CHECK(fair_unreserved(tenants, 2, UNLIMITED) == UNLIMITED);
	shares[0].effective = 4711;
	CHECK(fair_shares(tenants, MANY + 1, 400, true, shares) == -E2BIG);
	CHECK(shares[0].effective == 4711);
	CHECK(!fair_shares(tenants, 0, 400, true, shares));
}

static void changed_configuration(void)
{
	/* The host's limit was cut below what is held: guarantees stay, all else drains. */
	EXPECT("cut host", 100, { WANTS(1, 10, 200, 200), 50, 50, FAIR_DRAINING },
	       { WANTS(1, 10, 5, 1000), 50, 10, FAIR_WAITING },
	       { WANTS(1, 0, 0, 0), 0, 0, FAIR_DEMAND });
	/* Guarantees above the capacity are cut in proportion. */
	EXPECT("guarantees above the host", 100, { WANTS(1, 300, 0, 1000), 75, 75, FAIR_GUARANTEE },
	       { WANTS(1, 100, 0, 1000), 25, 25, FAIR_GUARANTEE });
	EXPECT("nothing to share", 0, { WANTS(1, 10, 0, 10), 0, 0, FAIR_SHARE },
	       { WANTS(1, 0, 5, 10), 0, 0, FAIR_DRAINING });
}

static void large_amounts(void)
{
	uint64_t huge = 1ull << 63;

	EXPECT("bytes", huge, { WANTS(1, 0, 0, UNLIMITED), huge / 4, huge / 4, FAIR_SHARE },
	       { WANTS(2, 0, 0, UNLIMITED), huge / 2, huge / 2, FAIR_SHARE },
	       { WANTS(1, 0, 0, UNLIMITED), huge / 4, huge / 4, FAIR_SHARE });
	EXPECT("all bits", UNLIMITED - 1,
	       { WANTS(10000, 0, 0, UNLIMITED), 18444899583751176496u, 18444899583751176496u,
		 FAIR_SHARE },
	       { WANTS(1, 0, 0, UNLIMITED), 1844489958375118u, 1844489958375118u, FAIR_SHARE });
	/* All tenants at the ends of all ranges. */
	static struct fair_tenant tenants[MANY];
	static struct fair_share shares[MANY];
	wide sum = 0;

	for (unsigned i = 0; i < MANY; i++)
		tenants[i] = (struct fair_tenant){ .weight = UINT32_MAX - i,
						   .limit = UNLIMITED,
						   .used = UNLIMITED - 2,
						   .guarantee = i % 2 ? UNLIMITED : 0,
						   .demand = UNLIMITED };
	CHECK(!fair_shares(tenants, MANY, UNLIMITED - 1, true, shares));
	for (unsigned i = 0; i < MANY; i++)
		sum += shares[i].share;
	CHECK(sum <= UNLIMITED - 1 && sum > UNLIMITED - 1 - MANY);
	CHECK(fair_unreserved(tenants, MANY, UNLIMITED - 1) == 0);
}

/* ---- properties over random cases */

struct world {
	struct fair_tenant tenant[MANY];
	struct fair_share share[MANY];
	uint64_t guarantee[MANY], demand[MANY]; /* as they count */
	uint64_t capacity;
	unsigned count;
	bool guarantees_fit; /* into the capacity */
	bool fits;	     /* what is held, and the unused guarantees, into the capacity */
};

static struct world world;
static unsigned case_number;

/* Prints the case that failed. */
static bool holds(bool good, const char *property, unsigned one, unsigned other)
{
	if (good)
		return true;
	CHECK(false, "%s: case %u, tenants %u and %u, capacity %llu", property, case_number, one,
	      other, (unsigned long long)world.capacity);
	for (unsigned i = 0; i < world.count && i < 32; i++) {
		const struct fair_tenant *tenant = &world.tenant[i];

		printf("  %u: weight %u guarantee %llu limit %llu used %llu demand %llu:"
		       " share %llu effective %llu %s\n",
		       i, tenant->weight, (unsigned long long)tenant->guarantee,
		       (unsigned long long)tenant->limit, (unsigned long long)tenant->used,
		       (unsigned long long)tenant->demand, (unsigned long long)world.share[i].share,
		       (unsigned long long)world.share[i].effective,
		       fair_reason_names[world.share[i].reason]);
	}
	return false;
}

static void world_make(void)
{
	static const uint64_t sizes[] = { 4, 50, 1000, 1u << 20, 1ull << 40, 1ull << 63 };
	static const uint32_t weights_most[] = { 1, 4, 100, 10000 };
	uint64_t size = sizes[random_below(6)], most;
	uint32_t weight = weights_most[random_below(4)];
	unsigned guaranteed = (unsigned)random_below(101), limited = (unsigned)random_below(101);
	unsigned wild = (unsigned)random_below(4);
	wide reserved = 0, taken = 0;

	world.capacity = random_below(size + 1);
	world.count = 1 + (unsigned)random_below(random_chance(1) ? MANY : 1u << random_below(6));
	most = world.capacity / (world.count * (1 + random_below(3))) + 1;
	for (unsigned i = 0; i < world.count; i++) {
		struct fair_tenant *tenant = &world.tenant[i];

		*tenant = (struct fair_tenant){ .weight = 1 + (uint32_t)random_below(weight),
						.limit = UNLIMITED };
		if (random_chance(limited))
			tenant->limit = random_below(random_chance(50) ? size : 2 * most);
		if (random_chance(guaranteed))
			tenant->guarantee = random_below(wild ? most : size);
		/* Often something is left, at times too much is held. */
		tenant->used = random_chance(30) ? 0 : random_below(wild ? 2 * most : size);
		if (wild == 1 && taken + larger(tenant->used, tenant->guarantee) > world.capacity)
			tenant->used = 0;
		taken += larger(tenant->used, smaller(tenant->guarantee, tenant->limit));
		if (random_chance(70))
			tenant->demand = random_chance(30) ? UNLIMITED :
							     tenant->used + random_below(4 * most);
		/* Equal tenants, but for their weight, in which only the rule decides. */
		if (i && random_chance(30)) {
			uint32_t own = tenant->weight;

			*tenant = tenant[-1];
			tenant->weight = own;
		}
	}
	taken = 0;
	for (unsigned i = 0; i < world.count; i++) {
		const struct fair_tenant *tenant = &world.tenant[i];

		world.guarantee[i] = smaller(tenant->guarantee, tenant->limit);
		world.demand[i] = smaller(larger(tenant->used, tenant->demand),
					  smaller(tenant->limit, world.capacity));
		reserved += world.guarantee[i];
		taken += larger(tenant->used, world.guarantee[i]);
	}
	world.guarantees_fit = reserved <= world.capacity;
	world.fits = taken <= world.capacity;
}

static bool world_feasible(void)
{
	wide shares = 0, taken = 0;

	for (unsigned i = 0; i < world.count; i++) {
		uint64_t used = world.tenant[i].used, effective = world.share[i].effective;

		shares += world.share[i].share;
		taken += larger(used, effective);
		if (!world.fits && world.guarantees_fit &&
		    !holds(effective <= larger(used, world.guarantee[i]),
			   "none gets room that does not exist", i, i))
			return false;
	}
	return holds(shares <= world.capacity, "shares fit", 0, 0) &&
	       (!world.fits || holds(taken <= world.capacity, "limits in force fit", 0, 0));
}

static bool world_guarantees(void)
{
	for (unsigned i = 0; world.guarantees_fit && i < world.count; i++)
		if (!holds(world.share[i].effective >= world.guarantee[i] &&
				   world.share[i].share >= world.guarantee[i],
			   "guarantees kept", i, i))
			return false;
	return true;
}

static bool world_limits(void)
{
	for (unsigned i = 0; i < world.count; i++)
		if (!holds(world.share[i].effective <= world.tenant[i].limit &&
				   world.share[i].share <= world.tenant[i].limit,
			   "limits respected", i, i))
			return false;
	return true;
}

/* Only a tenant above its share has a limit in force below what it holds, and there it is the
 * share; only then does another one wait. */
static bool world_drains(void)
{
	bool draining = false, waiting = false;

	for (unsigned i = 0; i < world.count; i++) {
		const struct fair_share *share = &world.share[i];
		bool above = world.tenant[i].used > share->share;

		draining |= above;
		waiting |= share->effective < share->share;
		if (!holds(above ? share->effective == share->share :
				   share->effective >= world.tenant[i].used,
			   "what is held stays, and drains above the share", i, i) ||
		    !holds(above == (share->reason == FAIR_DRAINING), "drains for a reason", i,
			   i) ||
		    !holds((share->effective < share->share) == (share->reason == FAIR_WAITING),
			   "waits for a reason", i, i))
			return false;
	}
	return holds(!waiting || draining, "waits only for one that drains", 0, 0);
}

/* Nothing is left while a demand is not met, and nothing is lent on top of demand then. */
static bool world_conserves(void)
{
	wide shares = 0, taken = 0;
	bool waiting = false;
	unsigned unmet = world.count;

	for (unsigned i = 0; i < world.count; i++) {
		shares += world.share[i].share;
		taken += larger(world.tenant[i].used, world.share[i].effective);
		waiting |= world.share[i].effective < world.share[i].share;
		if (world.share[i].share < world.demand[i])
			unmet = i;
	}
	/* (guarantees that were cut in proportion are whole numbers, rounded down) */
	if (unmet < world.count &&
	    !holds(shares == world.capacity, "shares use all capacity", unmet, unmet))
		return false;
	if (waiting && world.fits &&
	    !holds(taken == world.capacity, "limits in force use all capacity", 0, 0))
		return false;
	for (unsigned i = 0; i < world.count; i++) {
		uint64_t share = world.share[i].share;

		if (unmet < world.count && world.guarantees_fit &&
		    !holds(share <= larger(world.guarantee[i], world.demand[i]),
			   "nothing idle while a demand is unmet", i, unmet))
			return false;
		if (shares < world.capacity &&
		    !holds(share == smaller(world.tenant[i].limit, world.capacity),
			   "what is left is offered", i, i))
			return false;
	}
	return true;
}

/* Whether ONE, which has A and wants more, would rather have what OTHER has for each unit of
 * weight; one unit of the amount cannot be divided. */
static bool envies(unsigned one, uint64_t a, unsigned other, uint64_t b)
{
	return b && (wide)(b - 1) * world.tenant[one].weight >=
			    (wide)(a + 1) * world.tenant[other].weight;
}

static bool world_no_envy(void)
{
	for (unsigned i = 0; i < world.count; i++)
		for (unsigned j = 0; j < world.count; j++) {
			const struct fair_share *one = &world.share[i], *other = &world.share[j];

			if (one->share < world.demand[i] && other->share > world.guarantee[j] &&
			    !holds(!envies(i, one->share, j, other->share), "no envy", i, j))
				return false;
			if (one->effective < one->share && world.fits &&
			    other->reason != FAIR_DRAINING &&
			    other->effective > larger(world.guarantee[j], world.tenant[j].used) &&
			    !holds(!envies(i, one->effective, j, other->effective),
				   "no envy while waiting", i, j))
				return false;
		}
	return true;
}

/* A tenant that is like another one but for its weight; and the same one with more weight. Shares
 * of others are rounded, and limits in force have them as bounds: one unit may get lost there. */
static bool world_monotone(void)
{
	static struct fair_share more[MANY];
	unsigned one = (unsigned)random_below(world.count);
	uint32_t weight = world.tenant[one].weight;

	for (unsigned i = 1; i < world.count; i++) {
		const struct fair_tenant *a = &world.tenant[i - 1], *b = &world.tenant[i];

		if (a->guarantee != b->guarantee || a->limit != b->limit || a->used != b->used ||
		    a->demand != b->demand || a->weight == b->weight)
			continue;
		if (!holds(a->weight < b->weight ?
				   world.share[i - 1].share <= world.share[i].share :
				   world.share[i - 1].share >= world.share[i].share,
			   "the heavier of equals has no less", i - 1, i) ||
		    !holds(a->weight < b->weight ?
				   world.share[i - 1].effective <= world.share[i].effective :
				   world.share[i - 1].effective >= world.share[i].effective,
			   "the heavier of equals has no less in force", i - 1, i))
			return false;
	}
	world.tenant[one].weight += 1 + (uint32_t)random_below(random_chance(50) ? 2 : 3 * weight);
	fair_shares(world.tenant, world.count, world.capacity, true, more);
	world.tenant[one].weight = weight;
	return holds(more[one].share >= world.share[one].share, "more weight gives no less", one,
		     one) &&
	       holds(more[one].effective + 1 >= world.share[one].effective,
		     "more weight gives no less in force", one, one);
}

static void properties(void)
{
	static bool (*const all[])(void) = { world_feasible, world_guarantees, world_limits,
					     world_drains,   world_conserves,  world_no_envy,
					     world_monotone };
	unsigned cases = RANDOM_CASES * test_factor(), fitting = 0, draining = 0, waiting = 0;
	bool good = true;

	random_seed();
	for (case_number = 0; good && case_number < cases; case_number++) {
		bool drains = false, waits = false;

		world_make();
		CHECK(!fair_shares(world.tenant, world.count, world.capacity, true, world.share));
		for (unsigned i = 0; good && i < sizeof(all) / sizeof(all[0]); i++)
			good = all[i]();
		for (unsigned i = 0; i < world.count; i++) {
			drains |= world.share[i].reason == FAIR_DRAINING;
			waits |= world.share[i].reason == FAIR_WAITING;
		}
		fitting += world.fits;
		draining += drains;
		waiting += waits;
	}
	printf("%u cases, %u of them fit, %u drain, %u wait\n", case_number, fitting, draining,
	       waiting);
	/* The cases are about what they should be about. */
	CHECK(!good || (fitting > cases / 4 && draining > cases / 4 && waiting > cases / 20));
}

/* One call, to be counted: valgrind --tool=callgrind --toggle-collect=fair_shares. */
static void thousand_tenants(void)
{
	static struct fair_tenant tenants[1000];
	static struct fair_share shares[1000];

	random_seed();
	for (unsigned i = 0; i < 1000; i++)
		tenants[i] = (struct fair_tenant){ .weight = 1 + (uint32_t)random_below(10000),
						   .limit = UNLIMITED,
						   .guarantee = random_below(100),
						   .used = random_below(1000),
						   .demand = random_below(4000) };
	CHECK(!fair_shares(tenants, 1000, 1000000, true, shares));
}

static void driver(void)
{
	RUN(weights);
	RUN(lending);
	RUN(begins);
	RUN(limits);
	RUN(changed_configuration);
	RUN(large_amounts);
	RUN(properties);
	RUN(thousand_tenants);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
