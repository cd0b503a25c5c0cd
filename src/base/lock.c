/* SPDX-License-Identifier: MIT */
/* The slow half of the lock, by futex; see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void lock_wait(struct lock *lock)
{
	int saved = errno;

	/* Whoever comes out of here may not be the last that waits: it leaves the
	 * word saying so, at the price of one wake-up too many. */
	while (__atomic_exchange_n(&lock->word, LOCK_WAITED_FOR, __ATOMIC_ACQUIRE) != LOCK_FREE)
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, LOCK_WAITED_FOR, NULL, NULL, 0);
	errno = saved;
}

void lock_wake(struct lock *lock)
{
	int saved = errno;

	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
