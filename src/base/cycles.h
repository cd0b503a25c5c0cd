/* SPDX-License-Identifier: MIT */
/*
 * The processor's counter of time, which costs a few instructions where a clock costs tens. Its
 * unit differs between machines: two looks at the counter and at a clock tell the scale. And the
 * processor's pause, for loops that wait for so short a time that sleeping would take longer.
 */
#ifndef BASE_CYCLES_H
#define BASE_CYCLES_H

#include <stdint.h>

#include "base/clock.h"

static inline uint64_t cycles_now(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return clock_now_ns();
#endif
}

static inline void cycles_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* One moment by both. */
struct cycles_mark {
	uint64_t cycles, ns;
};

/* Of several looks the fastest: between its two readings nothing else ran. */
static inline struct cycles_mark cycles_mark(void)
{
	struct cycles_mark mark = { 0, 0 };
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = cycles_now(), ns = clock_now_ns(), took = cycles_now() - before;

		if (took >= fastest)
			continue;
		fastest = took;
		mark = (struct cycles_mark){ before + took / 2, ns };
	}
	return mark;
}

/* Nanoseconds of a cycle, times 2^32. */
static inline uint64_t cycles_scale(const struct cycles_mark *from, const struct cycles_mark *to)
{
	uint64_t cycles = to->cycles - from->cycles, ns = to->ns - from->ns;

	if (!cycles || !ns || (int64_t)cycles < 0)
		return 1ull << 32;
	return (uint64_t)((double)ns / (double)cycles * 4294967296.0);
}

/* 0 where the counters of two processors differ by more than the time that has passed. */
static inline uint64_t cycles_ns(uint64_t cycles, uint64_t scale)
{
	if (__builtin_expect((int64_t)cycles < 0, 0))
		return 0;
#ifdef __SIZEOF_INT128__
	return (uint64_t)((unsigned __int128)cycles * scale >> 32);
#else
	return (cycles >> 32) * scale + (cycles & UINT32_MAX) * (scale >> 32) +
	       ((cycles & UINT32_MAX) * (scale & UINT32_MAX) >> 32);
#endif
}

#endif
