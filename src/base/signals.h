/* SPDX-License-Identifier: MIT */
/*
 * Signals of the calling thread, held back while it does something long that its own handlers
 * must not come back to: a handler may call a verb, or leave by siglongjmp. Faults of the
 * program itself are not held back.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

static inline void signals_hold(sigset_t *ret_before)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t held;

	sigfillset(&held);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&held, faults[i]);
	pthread_sigmask(SIG_BLOCK, &held, ret_before);
}

static inline void signals_let_go(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
