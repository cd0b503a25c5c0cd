/* SPDX-License-Identifier: MIT */
/* What a tenant wants; see fair_demand.h. */
#include "collector/fair_demand.h"

static uint64_t demand_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void fair_demand_note(struct fair_demand *demand, uint64_t now_ns, uint64_t used, uint64_t asked,
		      bool met)
{
	uint64_t period = now_ns / FAIR_PERIOD_NS, wanted = demand_add(used, asked);

	if (period != demand->period) {
		demand->before = period == demand->period + 1 ? demand->peak : 0;
		demand->peak = 0;
		demand->period = period;
	}
	if (!met) {
		wanted = demand_add(wanted, used);
		demand->refused = asked;
		demand->refused_ns = now_ns;
	} else if (asked) {
		demand->refused = 0;
	}
	if (wanted > demand->peak)
		demand->peak = wanted;
}

uint64_t fair_demand_now(const struct fair_demand *demand, uint64_t now_ns, uint64_t used)
{
	uint64_t passed = now_ns / FAIR_PERIOD_NS - demand->period, wanted = used;

	if (passed <= 1 && demand->peak > wanted)
		wanted = demand->peak;
	if (passed == 0 && demand->before > wanted)
		wanted = demand->before;
	if (demand->refused && now_ns - demand->refused_ns < FAIR_REFUSED_NS &&
	    demand_add(used, demand->refused) > wanted)
		wanted = demand_add(used, demand->refused);
	return wanted;
}
