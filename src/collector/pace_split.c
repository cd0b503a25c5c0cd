/* SPDX-License-Identifier: MIT */
/* A rate divided by demand; see pace_split.h. */
#include "collector/pace_split.h"

#include <stdbool.h>

enum { IDLE_PART = 256 }; /* an idle process has one in so many of an equal part */

void pace_split(uint64_t rate, struct pace_part *parts, unsigned count)
{
	uint64_t left = rate, least, level;
	unsigned open = count;
	bool settled = true;

	if (!count)
		return;
	least = rate / count / IDLE_PART;
	for (unsigned i = 0; i < count; i++)
		parts[i].share = 0;
	/* A process that demands at most an equal part gets its demand, until all others demand more. */
	while (open && settled) {
		level = left / open;
		settled = false;
		for (unsigned i = 0; i < count; i++) {
			uint64_t demand = parts[i].demand > least ? parts[i].demand : least;

			if (parts[i].share || demand > level)
				continue;
			parts[i].share = demand ? demand : 1;
			left -= demand;
			open--;
			settled = true;
		}
	}
	level = open ? left / open : left / count;
	for (unsigned i = 0; i < count; i++) {
		if (!open)
			parts[i].share += level;
		else if (!parts[i].share)
			parts[i].share = level ? level : 1;
	}
}
