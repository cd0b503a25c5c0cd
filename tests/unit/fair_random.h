/* SPDX-License-Identifier: MIT */
/* What the tests of fair shares have in common: random numbers that are the same at each run, and
 * others with FAIR_SEED=N in the environment; the seed is printed. */
#ifndef TESTS_FAIR_RANDOM_H
#define TESTS_FAIR_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t random_state;

static inline void random_seed(void)
{
	const char *text = getenv("FAIR_SEED");

	random_state = text ? strtoull(text, NULL, 0) : 20240229;
	printf("FAIR_SEED=%llu\n", (unsigned long long)random_state);
	random_state = random_state * 2 + 1;
}

static inline uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 2685821657736338717u;
}

/* From 0 to BOUND - 1; BOUND is at most 2^63 + 1. */
static inline uint64_t random_below(uint64_t bound)
{
	return bound ? random_next() % bound : 0;
}

static inline bool random_chance(unsigned percent)
{
	return random_below(100) < percent;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
