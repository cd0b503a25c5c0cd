/* SPDX-License-Identifier: MIT */
/*
 * Fair shares in time: tenants that create whenever they may, and destroy at random. They get to
 * their shares and stay there, and every promise holds at each step on the way.
 */
#include "collector/fair_demand.h"
#include "collector/fair_pressure.h"
#include "collector/fair_shares.h"

#include "harness.h"
#include "unit/fair_random.h"

enum { SIMULATIONS = 300 };

struct actor {
	uint64_t wants;	   /* creates until it holds so much */
	unsigned destroys; /* one object, with that chance in each step, in per cent */
	struct fair_demand demand;
};

struct simulation {
	struct fair_tenant tenant[16];
	struct fair_share share[16];
	struct actor actor[16];
	unsigned count;
	uint64_t capacity, now_ns;
	struct fair_pressure pressure;
	bool unmet;
	bool kept; /* every promise so far */
};

static const uint64_t step_ns = 50000000; /* between two computations */

static uint64_t simulation_used(const struct simulation *simulation)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < simulation->count; i++)
		used += simulation->tenant[i].used;
	return used;
}

static void simulation_press(struct simulation *simulation, uint64_t asked)
{
	struct fair_load load = { .now_ns = simulation->now_ns,
				  .used = simulation_used(simulation) + asked,
				  .capacity = simulation->capacity,
				  .percent = 80,
				  .unmet = simulation->unmet };

	simulation->pressure = fair_pressure_next(simulation->pressure, &load);
	simulation->unmet = false;
}

static void simulation_compute(struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->count; i++) {
		struct fair_tenant *tenant = &simulation->tenant[i];
		struct fair_demand *demand = &simulation->actor[i].demand;

		fair_demand_note(demand, simulation->now_ns, tenant->used, 0, true);
		tenant->demand = fair_demand_now(demand, simulation->now_ns, tenant->used);
	}
	fair_shares(simulation->tenant, simulation->count, simulation->capacity,
		    simulation->pressure.on, simulation->share);
}

/* Nothing is over the capacity, and nothing that somebody may create now would be. */
static void simulation_check(struct simulation *simulation)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < simulation->count; i++)
		taken += larger(simulation->tenant[i].used, simulation->share[i].effective);
	simulation->kept &= simulation_used(simulation) <= simulation->capacity;
	simulation->kept &= !simulation->pressure.on || taken <= simulation->capacity;
}

/* A tenant asks for one object, as the collector would answer. */
static bool simulation_ask(struct simulation *simulation, unsigned i)
{
	struct fair_tenant *tenant = &simulation->tenant[i];
	bool was_on = simulation->pressure.on, guaranteed = tenant->used < tenant->guarantee, met;

	simulation_press(simulation, 1);
	if (!was_on && simulation->pressure.on)
		simulation_compute(simulation);
	met = tenant->used < simulation->share[i].effective &&
	      simulation_used(simulation) < simulation->capacity &&
	      (simulation->pressure.on || guaranteed ||
	       fair_unreserved(simulation->tenant, simulation->count, simulation->capacity));
	simulation->kept &= met || !guaranteed;
	fair_demand_note(&simulation->actor[i].demand, simulation->now_ns, tenant->used, 1, met);
	tenant->used += met;
	simulation->unmet |= !met && tenant->used < tenant->limit;
	simulation_check(simulation);
	return met;
}

/* 50 ms: all destroy and create in turns, then the shares are computed. */
static void simulation_step(struct simulation *simulation)
{
	bool moved = true;

	for (unsigned i = 0; i < simulation->count; i++)
		if (simulation->tenant[i].used > simulation->actor[i].wants ||
		    (simulation->tenant[i].used && random_chance(simulation->actor[i].destroys)))
			simulation->tenant[i].used--;
	while (moved && simulation->kept) {
		moved = false;
		for (unsigned i = 0; i < simulation->count; i++)
			if (simulation->tenant[i].used < simulation->actor[i].wants)
				moved |= simulation_ask(simulation, i);
		simulation->now_ns += 100000;
	}
	simulation->now_ns += step_ns;
	simulation_press(simulation, 0);
	simulation_compute(simulation);
	simulation_check(simulation);
}

/* Whether each tenant holds what the rule gives it by what it really wants. */
static bool simulation_settled(const struct simulation *simulation)
{
	struct fair_tenant tenants[16];
	struct fair_share goal[16];
	bool settled = true;

	for (unsigned i = 0; i < simulation->count; i++) {
		tenants[i] = simulation->tenant[i];
		tenants[i].used = 0;
		tenants[i].demand = simulation->actor[i].wants;
	}
	fair_shares(tenants, simulation->count, simulation->capacity, true, goal);
	for (unsigned i = 0; i < simulation->count; i++)
		settled &= simulation->tenant[i].used ==
			   smaller(simulation->actor[i].wants, goal[i].share);
	return settled;
}

/* Steps until it is so; 0 if that does not come about, or a promise was broken. */
static unsigned simulation_settle(struct simulation *simulation)
{
	for (unsigned step = 1; step < 50000 && simulation->kept; step++) {
		simulation_step(simulation);
		if (simulation_settled(simulation))
			return step;
	}
	return 0;
}

static void simulation_begin(struct simulation *simulation, uint64_t capacity)
{
	*simulation = (struct simulation){ .capacity = capacity, .now_ns = 1, .kept = true };
}

static void simulation_add(struct simulation *simulation, uint32_t weight, uint64_t guarantee,
			   uint64_t limit, uint64_t wants)
{
	simulation->tenant[simulation->count] =
		(struct fair_tenant){ .weight = weight, .guarantee = guarantee, .limit = limit };
	simulation->actor[simulation->count++] = (struct actor){ .wants = wants, .destroys = 50 };
	simulation_compute(simulation);
}

/* What the three tenants of 1:2:1 hold, and how many steps it took. */
static void three_hold(struct simulation *simulation, unsigned steps, uint64_t a, uint64_t b,
		       uint64_t c)
{
	uint64_t used[3];

	for (unsigned i = 0; i < steps; i++)
		simulation_step(simulation);
	for (unsigned i = 0; i < 3; i++)
		used[i] = simulation->tenant[i].used;
	CHECK(used[0] == a && used[1] == b && used[2] == c, "%llu/%llu/%llu",
	      (unsigned long long)used[0], (unsigned long long)used[1],
	      (unsigned long long)used[2]);
	CHECK(simulation->kept);
}

static void one_two_one(void)
{
	const uint64_t all = 1000000;
	struct simulation simulation;

	random_seed();
	simulation_begin(&simulation, 400);
	simulation_add(&simulation, 1, 20, UNLIMITED, all);
	simulation_add(&simulation, 2, 20, UNLIMITED, all);
	simulation_add(&simulation, 1, 20, UNLIMITED, all);
	/* A second has 20 steps. Who begins first has more at first, and gives back. */
	CHECK(simulation_settle(&simulation));
	for (unsigned step = 0; step < 1200; step++)
		three_hold(&simulation, 1, 100, 200, 100);
	/* One leaves: the others have its share within a second, but not its guarantee. */
	simulation.actor[2] = (struct actor){ 0 };
	simulation.tenant[2].used = 0;
	three_hold(&simulation, 20, 127, 253, 0);
	/* It returns: its guarantee at once, the rest as the others give back. */
	simulation.actor[2] = (struct actor){ .wants = all, .destroys = 50 };
	three_hold(&simulation, 1, simulation.tenant[0].used, simulation.tenant[1].used, 20);
	printf("settled again after %u steps\n", simulation_settle(&simulation));
	for (unsigned step = 0; step < 1200; step++)
		three_hold(&simulation, 1, 100, 200, 100);
	/* The others do not give back: it has its guarantee and nothing more. */
	simulation.actor[2] = (struct actor){ 0 };
	simulation.tenant[2].used = 0;
	three_hold(&simulation, 20, 127, 253, 0);
	simulation.actor[0].destroys = simulation.actor[1].destroys = 0;
	simulation.actor[2] = (struct actor){ .wants = all };
	three_hold(&simulation, 200, 127, 253, 20);
}

/* A tenant without a guarantee, on a full host, that asks for one object once in 3 s. */
static void slow_beginner(void)
{
	struct simulation simulation;
	bool met = false;

	random_seed();
	simulation_begin(&simulation, 400);
	simulation_add(&simulation, 1, 0, UNLIMITED, 1000000);
	simulation.actor[0].destroys = 10;
	simulation_add(&simulation, 1, 0, UNLIMITED, 0);
	CHECK(simulation_settle(&simulation));
	CHECK(simulation.tenant[0].used == 400);
	simulation.actor[1].destroys = 0;
	for (unsigned i = 0; i < 3 && !met; i++) {
		met = simulation_ask(&simulation, 1);
		simulation.actor[1].wants = simulation.tenant[1].used;
		for (unsigned step = 0; step < 60; step++)
			simulation_step(&simulation);
	}
	CHECK(met && simulation.kept);
}

/* Random tenants that come, go and change what they want. */
static void simulations(void)
{
	unsigned most = 0, oscillating = 0, unsettled = 0, broken = 0;

	random_seed();
	for (unsigned run = 0; !unsettled && run < SIMULATIONS * test_factor(); run++) {
		struct simulation simulation;
		unsigned count = 2 + (unsigned)random_below(11);
		uint64_t capacity = 20 + random_below(random_chance(50) ? 100 : 1000);

		simulation_begin(&simulation, capacity);
		for (unsigned i = 0; i < count; i++) {
			uint64_t guarantee = random_chance(50) ? random_below(capacity / count) : 0;
			uint64_t limit = random_chance(30) ? guarantee + random_below(capacity) :
							     UNLIMITED;

			simulation_add(&simulation, 1 + (uint32_t)random_below(10), guarantee,
				       limit, 0);
		}
		for (unsigned phase = 0; !unsettled && phase < 4; phase++) {
			unsigned steps;

			for (unsigned i = 0; i < count; i++) {
				struct actor *actor = &simulation.actor[i];

				actor->wants = random_chance(30) ? 0 :
					       random_chance(50) ? 1000000 :
								   random_below(capacity);
				actor->destroys = 5 + (unsigned)random_below(90);
				if (random_chance(20)) {
					simulation.tenant[i].used = 0;
					actor->demand = (struct fair_demand){ 0 };
				}
			}
			steps = simulation_settle(&simulation);
			unsettled += !steps;
			most = steps > most ? steps : most;
			/* What was remembered of the time before is forgotten; then nothing moves. */
			for (unsigned step = 0; step < FAIR_REFUSED_NS / step_ns + 100; step++)
				simulation_step(&simulation);
			for (unsigned step = 0; step < 200; step++) {
				simulation_step(&simulation);
				oscillating += !simulation_settled(&simulation);
			}
		}
		broken += !simulation.kept;
	}
	printf("settled after at most %u steps\n", most);
	CHECK(!broken, "%u", broken);
	CHECK(!unsettled, "%u", unsettled);
	CHECK(!oscillating, "%u", oscillating);
}

static void driver(void)
{
	RUN(one_two_one);
	RUN(slow_beginner);
	RUN(simulations);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
