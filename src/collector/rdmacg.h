/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own limit on a cgroup, rdma.max: one number of contexts and one of objects of
 * all kinds together, on each device. It is weaker than a guard, and needs none. Knows neither
 * tenants nor policies.
 */
#ifndef COLLECTOR_RDMACG_H
#define COLLECTOR_RDMACG_H

#include <stdbool.h>
#include <stdint.h>

#include "terms/kinds.h"

enum { RDMACG_NUMBER = 24 };

/* As the file has them: numbers, or "max". */
struct rdmacg_limit {
	char handles[RDMACG_NUMBER], objects[RDMACG_NUMBER];
};

extern const struct rdmacg_limit rdmacg_unlimited;

/* What cannot be passed without passing one of these limits. */
struct rdmacg_limit rdmacg_limit_of(const uint64_t limit[KIND_COUNT]);

bool rdmacg_is_same(const struct rdmacg_limit *a, const struct rdmacg_limit *b);

/* Whether the cgroup of that path can have one. */
bool rdmacg_is_possible(const char *cgroup);

/* On devices that match none of the patterns, nothing is allowed. 0 when each device has its limit;
 * -ENODEV if the host has no device, or another -errno. */
int rdmacg_write(const char *cgroup, const struct rdmacg_limit *limit, const char *patterns);

#endif
