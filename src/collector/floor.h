/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own limit on a cgroup, rdma.max: one number of contexts and one of objects of
 * all kinds together, on each device. It is weaker than a guard, and needs none. Knows neither
 * tenants nor policies.
 */
#ifndef COLLECTOR_FLOOR_H
#define COLLECTOR_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/kinds.h"

enum { FLOOR_NUMBER = 24 };

/* As the file has them: numbers, or "max". */
struct floor {
	char handles[FLOOR_NUMBER], objects[FLOOR_NUMBER];
};

extern const struct floor floor_none;

/* What cannot be passed without passing one of these limits. */
struct floor floor_below(const uint64_t limit[KIND_COUNT]);

bool floor_is_same(const struct floor *a, const struct floor *b);

/* Whether the cgroup of that path can have one. */
bool floor_is_possible(const char *cgroup);

/* 0 when each device has it; -ENODEV when there are none, or another -errno. */
int floor_write(const char *cgroup, const struct floor *floor);

#endif
