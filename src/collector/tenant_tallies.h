/* SPDX-License-Identifier: MIT */
/*
 * The counters and gauges of tenants: sums over what their processes have in their usage pages. The
 * counters of processes that have ended stay in the sums, so that these never go back. Nothing is
 * decided by them.
 */
#ifndef COLLECTOR_TENANT_TALLIES_H
#define COLLECTOR_TENANT_TALLIES_H

#include "collector/books.h"

/* Before a member's page is given up: its counters stay with the tenant. */
void tenant_tallies_keep(struct books *books, unsigned member);

/* Chains the members of each tenant, for the calls below; until a member comes or goes. */
void tenant_tallies_chain(const struct books *books);

/* Of a tenant in total. What was posted by processes that have ended is part of it. False when no
 * process of it was ever counted, and all numbers are 0. */
bool tenant_tallies_sum(const struct books *books, unsigned tenant, struct tallies *ret_tallies,
			struct gauges *ret_gauges);

/* The gauges of a tenant on a device; false when none of its processes has used it. */
bool tenant_gauges_sum(const struct books *books, unsigned tenant, unsigned device,
		       struct gauges *ret_gauges);

#endif
