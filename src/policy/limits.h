/* SPDX-License-Identifier: MIT */
/* A table of amounts for each kind, in total and on single devices: struct policy_limits. */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include "policy/policy.h"

void policy_limits_init(struct policy_limits *limits);
void policy_limits_release(struct policy_limits *limits);

/* Where the amount is; NULL if the table has nothing for the device. device NULL: in total. */
const uint64_t *policy_limits_find(const struct policy_limits *limits, const char *device,
				   enum kind kind);

#endif
