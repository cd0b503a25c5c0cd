/* SPDX-License-Identifier: MIT */
/*
 * Names of users, for people who do not know their numbers. The sources of names (nsswitch.conf) may
 * be in the network and answer late or never, so a child process asks them, and all look-ups of one
 * struct users together get USERS_PATIENCE_MS.
 */
#ifndef CLI_USERS_H
#define CLI_USERS_H

#include <stdint.h>
#include <sys/types.h>

#include "output/table.h"
#include "proto/messages.h"

enum { USERS_PATIENCE_MS = 2000 };

struct users {
	struct list known;   /* what was asked already */
	int connection;	     /* to the child; -1: no child runs */
	pid_t child;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: nothing was asked yet */
};

void users_begin(struct users *users);

/* The name of the user; "" if it has none, or the answer did not come in time. */
void users_name(struct users *users, uint32_t uid, char ret_name[NAME_SIZE]);

void users_end(struct users *users);

#endif
