/* SPDX-License-Identifier: MIT */
/* The time of a clock as one number. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND_NS 1000000000u

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * CLOCK_SECOND_NS + (uint64_t)now.tv_nsec;
}

/* For deadlines and the age of things. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_now_seconds(void)
{
	return clock_now_ns() / CLOCK_SECOND_NS;
}

/* What programs in the kernel write, and /proc tells, counts from the boot. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

#endif
