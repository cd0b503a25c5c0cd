/* SPDX-License-Identifier: MIT */
/*
 * Guarded programs of the tests of leases: the words by which they speak with their driver, an open
 * device, and the scenario that makes as many QPs as it gets.
 */
#ifndef TESTS_DAEMON_MEMBER_H
#define TESTS_DAEMON_MEMBER_H

#include <stdint.h>

#include "fixture.h"
#include "harness.h"

enum { FIRST_UID = 61000, QPS_MAX = 64 };

/* Words of the shared page; those of a single test begin with WORD_OWN. */
enum { WORD_GO, WORD_READY, WORD_MADE, WORD_FAILURES, WORD_TIME, WORD_OWN };

static inline uint64_t nanoseconds(void)
{
	return (uint64_t)(seconds_now() * 1e9);
}

/* Opens the device, which no limit forbids. On a busy machine the collector may not answer in the
 * second that the library waits, and the library then refuses: try again. */
struct fixture member_fixture(void);

/* The scenario "exactly:N[w]": gets exactly N QPs; with w it keeps them until it is killed. */
void member_exactly(const char *argument);

/* Runs a scenario by both transports that need a collector. */
void member_expect(const char *scenario, const char *settings);

#endif
