/* SPDX-License-Identifier: MIT */
/*
 * Tenants that patterns of the policy make, [tenant job-%j]: one is made when the first process
 * matches, and ends when nothing of it is left. The books remember by which pattern a tenant was
 * made; its limits are those of the pattern, and over them what commands have set for it.
 */
#ifndef COLLECTOR_PATTERNS_H
#define COLLECTOR_PATTERNS_H

#include "collector/collector.h"

/* The number of a tenant of a pattern of the policy in force, made if it is not there. -errno with a
 * reason; -EUSERS: the pattern has its share of all tenants. */
int patterns_tenant(struct collector *collector, struct policy_tenant *pattern, const char *name,
		    const char **ret_reason);

/* Adds the tenants that were made and are on the books to a policy that was put together. Those that
 * the files name themselves are left to them. 0; -ENOMEM. */
int patterns_merge(const struct collector *collector, const struct policy *files,
		   struct policy *policy);

/* Whether a pattern has made that tenant, and no file names it. */
bool patterns_made(const struct collector *collector, const char *name);

#endif
