/* SPDX-License-Identifier: MIT */
/*
 * The division of a tenant's rate, over random cases: never more than the rate and the burst, and
 * all of it; who asks for less than an equal share gets it, and the others get the same; every
 * process that asks has its turn.
 */
#include "collector/rate_split.h"

#include "harness.h"
#include "terms/rates.h"
#include "unit/fair_random.h"

enum { MANY = 48, RANDOM_CASES = 20000 };

struct split_case {
	struct rate_claim claims[MANY];
	unsigned count;
	uint64_t rate, burst;
};

static struct split_case case_choose(void)
{
	struct split_case each = { .count = 1 + (unsigned)random_below(MANY),
				   .rate = (1 + random_below(random_chance(50) ? 20 : RATE_MOST)) *
					   RATE_PART,
				   .burst = (1 + random_below(random_chance(50) ? MANY : RATE_MOST)) *
					    RATE_PART };
	unsigned idle = (unsigned)random_below(101), modest = (unsigned)random_below(101);

	for (unsigned i = 0; i < each.count; i++) {
		struct rate_claim *claim = &each.claims[i];

		claim->active = !random_chance(idle);
		claim->demand = !claim->active	       ? (random_chance(50) ? each.rate / 16 : 0) :
				random_chance(modest) ? 1 + random_below(each.rate / each.count) :
							1 + random_below(each.rate);
	}
	return each;
}

/* What has been handed out, and to how many. */
static void sums(const struct split_case *each)
{
	uint64_t rate = 0, burst = 0, calls = each->burst / RATE_PART;
	unsigned chosen = 0;

	for (unsigned i = 0; i < each->count; i++) {
		const struct rate_claim *claim = &each->claims[i];

		rate += claim->rate;
		burst += claim->burst;
		chosen += claim->chosen;
		if (claim->chosen)
			CHECK(claim->burst >= RATE_PART && claim->burst % RATE_PART == 0,
			      "a burst of %llu parts", (unsigned long long)claim->burst);
		else
			CHECK(!claim->rate && !claim->burst, "not its turn, and has a share");
	}
	CHECK(rate <= each->rate && burst <= each->burst, "more than there is: %llu of %llu",
	      (unsigned long long)rate, (unsigned long long)each->rate);
	CHECK(rate + each->count >= each->rate && burst == each->burst, "not all: %llu of %llu",
	      (unsigned long long)rate, (unsigned long long)each->rate);
	CHECK(chosen == smaller(calls, each->count), "%u of %u with %llu calls", chosen,
	      each->count, (unsigned long long)calls);
}

/* Whoever lacks some has at least as much as everybody else; nobody lacks any if there is enough. */
static void fair(const struct split_case *each)
{
	uint64_t most = 0, least_of_lacking = UINT64_MAX, demand = 0;

	for (unsigned i = 0; i < each->count; i++) {
		const struct rate_claim *claim = &each->claims[i];

		if (!claim->chosen)
			continue;
		demand += claim->demand;
		most = larger(most, claim->rate);
		if (claim->rate < claim->demand)
			least_of_lacking = smaller(least_of_lacking, claim->rate);
	}
	CHECK(least_of_lacking >= most, "one lacks some and has %llu, another has %llu",
	      (unsigned long long)least_of_lacking, (unsigned long long)most);
	CHECK(demand > each->rate || least_of_lacking == UINT64_MAX,
	      "%llu of %llu are asked for, and one lacks some", (unsigned long long)demand,
	      (unsigned long long)each->rate);
}

static void random_cases(void)
{
	random_seed();
	for (unsigned i = 0; i < RANDOM_CASES; i++) {
		struct split_case each = case_choose();

		rate_split(each.claims, each.count, each.rate, each.burst,
			   (unsigned)random_below(UINT32_MAX));
		sums(&each);
		fair(&each);
	}
}

/* In as many turns as there are processes each that asks has had one, with a rate. */
static void nobody_starves(void)
{
	random_seed();
	for (unsigned i = 0; i < RANDOM_CASES / 10; i++) {
		struct split_case each = case_choose();
		unsigned first = (unsigned)random_below(1000);
		bool served[MANY] = { false };

		each.burst = (1 + random_below(each.count)) * RATE_PART;
		for (unsigned turn = first; turn < first + each.count; turn++) {
			rate_split(each.claims, each.count, each.rate, each.burst, turn);
			for (unsigned j = 0; j < each.count; j++)
				served[j] |= each.claims[j].chosen && each.claims[j].rate;
		}
		for (unsigned j = 0; j < each.count; j++)
			CHECK(served[j] || !each.claims[j].active, "process %u of %u, %llu calls", j,
			      each.count, (unsigned long long)(each.burst / RATE_PART));
	}
}

static void edges(void)
{
	struct rate_claim claims[2] = { { .demand = 0 }, { .demand = 0 } };

	rate_split(claims, 0, RATE_PART, RATE_PART, 7);
	rate_split(claims, 2, 2 * RATE_PART, 2 * RATE_PART, 0);
	CHECK(claims[0].rate == RATE_PART && claims[1].rate == RATE_PART, "idle ones share equally");
	claims[1] = (struct rate_claim){ .demand = 2 * RATE_PART, .active = true };
	rate_split(claims, 2, 2 * RATE_PART, RATE_PART, 0);
	CHECK(!claims[0].chosen && claims[1].rate == 2 * RATE_PART, "who asks goes first");
}

static void driver(void)
{
	RUN(random_cases);
	RUN(nobody_starves);
	RUN(edges);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
