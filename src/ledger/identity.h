/* SPDX-License-Identifier: MIT */
/*
 * Who a process is, beyond its number: numbers are reused, (number, start
 * time) is not. Start times and numbers only compare within one pair of pid
 * and time namespaces, so a view carries a token of those.
 */
#ifndef LEDGER_IDENTITY_H
#define LEDGER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
	pid_t pid;
	uint64_t start; /* clock ticks since boot; 0 where /proc cannot tell */
	uint64_t view;	/* token of the namespaces in which the two are meant; 0 = unknown */
};

struct identity identity_self(void);

/* When a process that we can see started; 0 when it cannot be told. */
uint64_t identity_start(pid_t pid);

/*
 * True only when the process has certainly ended: it is gone, or its number
 * belongs to a later one, or it is a zombie without threads, whose
 * descriptors the kernel has closed. Seen from another view nothing is
 * certain.
 */
bool identity_is_dead(const struct identity *who, uint64_t my_view);

#endif
