/* SPDX-License-Identifier: MIT */
/* How far words are from each other; see nearest.h. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { NEAREST_LETTERS = 48, NEAREST_FAR = 3 };

static uint8_t least(unsigned a, unsigned b)
{
	return (uint8_t)(a < b ? a : b);
}

/* Letters to insert, to leave out, to replace, or to exchange with the next one. */
static unsigned words_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	uint8_t cost[NEAREST_LETTERS + 1][NEAREST_LETTERS + 1];

	for (size_t i = 0; i <= a_length; i++)
		for (size_t j = 0; j <= b_length; j++) {
			if (!i || !j) {
				cost[i][j] = (uint8_t)(i + j);
				continue;
			}
			cost[i][j] = least(least(cost[i - 1][j], cost[i][j - 1]) + 1u,
					   cost[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1u : 0u));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1u);
		}
	return cost[a_length][b_length];
}

void nearest_offer(struct nearest *nearest, const char *text, size_t length)
{
	size_t word_length = strlen(nearest->word);
	unsigned distance;

	if (!length || length > NEAREST_LETTERS || word_length > NEAREST_LETTERS)
		return;
	distance = words_distance(nearest->word, word_length, text, length);
	/* Of a short word, half must be right. */
	if (distance >= NEAREST_FAR || 2 * distance > length ||
	    (nearest->best && distance >= nearest->distance))
		return;
	nearest->best = text;
	nearest->length = length;
	nearest->distance = distance;
}
