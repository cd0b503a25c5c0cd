/* SPDX-License-Identifier: MIT */
/*
 * A lock between the threads of one process: one word, zero when free, a few
 * instructions while no thread waits. Lies well on pages that a forked child
 * finds zeroed. Sections under it are short and never sleep.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { LOCK_FREE, LOCK_HELD, LOCK_WAITED_FOR };

struct lock {
	uint32_t word;
};

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

static inline void lock_acquire(struct lock *lock)
{
	uint32_t expected = LOCK_FREE;

	if (__builtin_expect(!__atomic_compare_exchange_n(&lock->word, &expected, LOCK_HELD, false,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
			     0))
		lock_wait(lock);
}

static inline void lock_release(struct lock *lock)
{
	if (__builtin_expect(__atomic_exchange_n(&lock->word, LOCK_FREE, __ATOMIC_RELEASE) ==
				     LOCK_WAITED_FOR,
			     0))
		lock_wake(lock);
}

#endif
