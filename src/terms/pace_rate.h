/* SPDX-License-Identifier: MIT */
/*
 * A rate: so much each second, and how much may come at once after a pause. Its text is
 * "10000/s" or "10000/s burst 200"; rates of bytes take sizes: "5MB/s burst 64K".
 */
#ifndef TERMS_PACE_RATE_H
#define TERMS_PACE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace_rate {
	uint64_t per_second; /* 0: not set; UNLIMITED */
	uint64_t burst;	     /* 0: what pace_rate_burst chooses */
};

enum {
	PACE_RATE_TEXT = 64,
	/* The least of a burst that nobody set, of bytes and of posts. */
	PACE_BYTES_LEAST = 65536,
	PACE_OPERATIONS_LEAST = 16,
};

/* Whether it limits anything. */
static inline bool pace_rate_is_limit(const struct pace_rate *rate)
{
	return rate->per_second != 0 && rate->per_second != UINT64_MAX;
}

/* Reads all of text[0..length); 0, -EINVAL or -ERANGE, with *ret_rate untouched on failure. */
int pace_rate_parse(const char *text, size_t length, bool bytes, struct pace_rate *ret_rate);

void pace_rate_print(const struct pace_rate *rate, char ret_text[PACE_RATE_TEXT]);

/* The burst in force: as set, or what comes in 50 ms, but at least `least`. */
uint64_t pace_rate_burst(const struct pace_rate *rate, uint64_t least);

/* The lower of two rates, with the lower of their bursts in force: it allows no more than either. The
 * first if none limits. */
struct pace_rate pace_rate_lower(struct pace_rate a, struct pace_rate b, uint64_t least);

#endif
