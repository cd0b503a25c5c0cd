/* SPDX-License-Identifier: MIT */
/* The division of a tenant's rate; see rate_split.h. */
#include "collector/rate_split.h"

#include "terms/rates.h"

enum { LEVELS_MOST = 64 }; /* passes of the division: what is left then is divided equally */

static uint64_t split_part(uint64_t whole, uint64_t part, uint64_t of)
{
	return of ? (uint64_t)((unsigned __int128)whole * part / of) : 0;
}

/* Marks at most so many, the active ones first, beginning with another one each turn. */
static void claims_choose(struct rate_claim *claims, unsigned count, uint64_t most, unsigned turn)
{
	/* Each turn begins where the last one ended. */
	uint64_t first = count ? (uint64_t)turn * most % count : 0;

	for (unsigned i = 0; i < count; i++)
		claims[i] = (struct rate_claim){ .demand = claims[i].demand,
						 .active = claims[i].active };
	for (int active = 1; active >= 0; active--)
		for (unsigned i = 0; i < count && most; i++) {
			struct rate_claim *claim = &claims[(i + first) % count];

			if (claim->active == active && !claim->chosen) {
				claim->chosen = true;
				most--;
			}
		}
}

static void claims_share_rate(struct rate_claim *claims, unsigned count, uint64_t rate)
{
	uint64_t left = rate, level;
	unsigned open = 0, met = 1;

	for (unsigned i = 0; i < count; i++)
		open += claims[i].chosen;
	/* Whoever asks for less than an equal share gets it; then the others' share is larger. */
	for (unsigned pass = 0; open && met && pass < LEVELS_MOST; pass++) {
		level = left / open;
		met = 0;
		for (unsigned i = 0; i < count; i++) {
			struct rate_claim *claim = &claims[i];

			if (!claim->chosen || claim->rate || claim->demand > level)
				continue;
			if (!claim->demand && pass)
				continue;
			claim->rate = claim->demand;
			left -= claim->rate;
			open--;
			met++;
		}
	}
	if (open) {
		level = left / open;
		for (unsigned i = 0; i < count; i++)
			if (claims[i].chosen && !claims[i].rate && claims[i].demand)
				claims[i].rate = level;
		return;
	}
	for (unsigned i = 0; i < count; i++)
		open += claims[i].chosen;
	for (unsigned i = 0; i < count && open; i++)
		if (claims[i].chosen)
			claims[i].rate += left / open;
}

/* In whole calls: one each, the rest by rate, and what is left over to the one with the most. */
static void claims_share_burst(struct rate_claim *claims, unsigned count, uint64_t calls)
{
	struct rate_claim *largest = NULL;
	uint64_t sum = 0, spare = calls;

	for (unsigned i = 0; i < count; i++) {
		if (!claims[i].chosen)
			continue;
		sum += claims[i].rate;
		spare--;
		if (!largest || claims[i].rate > largest->rate)
			largest = &claims[i];
	}
	calls = spare;
	for (unsigned i = 0; i < count; i++)
		if (claims[i].chosen) {
			uint64_t more = split_part(calls, claims[i].rate, sum);

			claims[i].burst = (1 + more) * RATE_PART;
			spare -= more;
		}
	if (largest)
		largest->burst += spare * RATE_PART;
}

void rate_split(struct rate_claim *claims, unsigned count, uint64_t rate, uint64_t burst,
		unsigned turn)
{
	uint64_t calls = burst / RATE_PART;

	claims_choose(claims, count, calls < count ? calls : count, turn);
	claims_share_rate(claims, count, rate);
	claims_share_burst(claims, count, calls);
}
