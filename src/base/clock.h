/* SPDX-License-Identifier: MIT */
/* The time since the machine was started: for deadlines and the age of things. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND_NS 1000000000u

/* Nanoseconds, CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_seconds(void)
{
	return clock_now_ns() / CLOCK_SECOND_NS;
}

#endif
