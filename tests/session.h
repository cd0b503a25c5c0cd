/* SPDX-License-Identifier: MIT */
/* How much the processes of a session work: whether a test still moves, on a busy machine too. */
#ifndef TESTS_SESSION_H
#define TESTS_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Adds up the processor time of the living processes of a session, in clock ticks and without the
 * caller's own. Returns whether one of them is runnable or waits for a device.
 */
bool session_ticks(pid_t session, uint64_t *ret_ticks);

#endif
