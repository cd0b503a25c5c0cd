/* SPDX-License-Identifier: MIT */
/* Whether the processes of a session still work, on a busy machine too. */
#ifndef TESTS_SESSION_H
#define TESTS_SESSION_H

#include <stdint.h>
#include <sys/types.h>

/* A process of this name waits for others: what it uses itself is no work. */
#define SESSION_WAITER "test-waits"

struct session_watch {
	pid_t session;
	double span;	      /* seconds */
	double marked, moved; /* when */
	uint64_t ticks;	      /* processor time of the session when marked, in clock ticks */
	uint64_t total;	      /* since the watch began, without what ended processes used */
};

/* Work is measured in spans of so many seconds. */
void session_watch_begin(struct session_watch *watch, pid_t session, double span, double now);

/*
 * For how many seconds the session has stood still: in each span its processes used less
 * than 2 % of a processor, none of them waited for a device, and none ended. Answering
 * somebody who polls costs less than that, and a program that is starved by 50 others gets more.
 * To be asked about once a second.
 */
double session_still(struct session_watch *watch, double now);

#endif
