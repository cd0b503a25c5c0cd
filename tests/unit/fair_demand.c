/* SPDX-License-Identifier: MIT */
/* What fair shares are computed from: demand that is remembered, and pressure that ends late. */
#include "collector/fair_demand.h"
#include "collector/fair_pressure.h"
#include "terms/terms.h"

#include "harness.h"

static void demand_remembered(void)
{
	const uint64_t period = FAIR_PERIOD_NS;
	struct fair_demand demand = { 0 };
	uint64_t now = 100 * period;

	CHECK(fair_demand_now(&demand, now, 7) == 7);
	fair_demand_note(&demand, now, 7, 3, true);
	CHECK(fair_demand_now(&demand, now, 10) == 10);
	CHECK(fair_demand_now(&demand, now + period, 2) == 10);
	CHECK(fair_demand_now(&demand, now + 2 * period, 2) == 2);
	/* The present period and the one before. */
	fair_demand_note(&demand, now + period, 4, 0, true);
	CHECK(fair_demand_now(&demand, now + period, 2) == 10);
	CHECK(fair_demand_now(&demand, now + 2 * period, 2) == 4);
	fair_demand_note(&demand, now + 9 * period, 1, 0, true);
	CHECK(fair_demand_now(&demand, now + 9 * period, 1) == 1);
	/* Refused: as much again, for a while; the amount itself until it is met, or 5 s. */
	now += 20 * period;
	fair_demand_note(&demand, now, 10, 5, false);
	CHECK(fair_demand_now(&demand, now, 10) == 25);
	CHECK(fair_demand_now(&demand, now + 2 * period, 10) == 15);
	CHECK(fair_demand_now(&demand, now + FAIR_REFUSED_NS - 1, 10) == 15);
	CHECK(fair_demand_now(&demand, now + FAIR_REFUSED_NS, 10) == 10);
	fair_demand_note(&demand, now, 10, 0, true);
	CHECK(fair_demand_now(&demand, now + 2 * period, 10) == 15);
	fair_demand_note(&demand, now, 10, 5, true);
	CHECK(fair_demand_now(&demand, now + 2 * period, 15) == 15);
	fair_demand_note(&demand, now, UINT64_MAX - 1, 5, false);
	CHECK(fair_demand_now(&demand, now, 1) == UINT64_MAX);
}

static void pressure_hysteresis(void)
{
	struct fair_load load = { .now_ns = 1, .used = 319, .capacity = 400, .percent = 80 };
	struct fair_pressure state = { 0 };

	/* next(used): the state after the load with that use */
#define NEXT(used_) (load.used = (used_), state = fair_pressure_next(state, &load), state.on)
	CHECK(!NEXT(319));
	CHECK(NEXT(320));
	CHECK(NEXT(300));
	CHECK(NEXT(280));
	CHECK(!NEXT(279));
	CHECK(!NEXT(319));
	/* A request that cannot be met, at any use. */
	load.unmet = true;
	CHECK(NEXT(10));
	load.unmet = false;
	load.now_ns += FAIR_UNMET_NS - 1;
	CHECK(NEXT(10));
	load.now_ns++;
	CHECK(!NEXT(10));
	load.now_ns = 1000 * (uint64_t)FAIR_UNMET_NS;
	load.unmet = true;
	CHECK(NEXT(300));
	load.unmet = false;
	load.now_ns += FAIR_UNMET_NS;
	CHECK(NEXT(300), "above the lower end");
	/* The ends of all ranges. */
	load.percent = 0;
	CHECK(NEXT(0));
	load.percent = 15;
	CHECK(NEXT(28));
	CHECK(!NEXT(27));
	load.percent = 101;
	CHECK(!NEXT(400));
	load.percent = 100;
	load.capacity = UNLIMITED - 1;
	CHECK(!NEXT(UNLIMITED - 2));
	CHECK(NEXT(UNLIMITED - 1));
	load.capacity = UNLIMITED;
	load.unmet = true;
	CHECK(!NEXT(UNLIMITED - 1));
#undef NEXT
}

static void driver(void)
{
	RUN(demand_remembered);
	RUN(pressure_hysteresis);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
