/* SPDX-License-Identifier: MIT */
/* How far words are from each other; see nearest.h. */
#include "cli/nearest.h"

#include <string.h>

enum { NEAREST_LETTERS = 32, NEAREST_FAR = 3 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Letters to insert, to leave out, to replace, or to exchange with the next one. */
static unsigned words_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned cost[NEAREST_LETTERS + 1][NEAREST_LETTERS + 1];

	for (size_t i = 0; i <= a_length; i++)
		for (size_t j = 0; j <= b_length; j++) {
			if (!i || !j) {
				cost[i][j] = (unsigned)(i + j);
				continue;
			}
			cost[i][j] = least(least(cost[i - 1][j], cost[i][j - 1]) + 1,
					   cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
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
