/* SPDX-License-Identifier: MIT */
/*
 * The limits and the modes in force: from the effective policy into the books. Grants, the
 * guard, rdma.max and displayed rows read them from the books. What the policy says (struct
 * scope, configured) and what is in force (limit) are apart.
 */
#ifndef COLLECTOR_LIMITS_H
#define COLLECTOR_LIMITS_H

#include "collector/collector.h"
#include "collector/fair_shares.h"

/* Of the host, and of every tenant on the books, in total and on every device that has a number. */
void limits_apply(struct collector *collector);

/* The same of one tenant, or on one device, that has just got its number. */
void limits_apply_tenant(struct collector *collector, unsigned tenant);
void limits_apply_device(struct collector *collector, unsigned device);

/* Whether the policy keeps a tenant from a device. Then its limits there are 0, of all kinds. */
bool limits_forbid_device(const struct collector *collector, unsigned tenant, unsigned device);

/* Puts a tenant's share into force, in a place (books_scope); or the configured limit, if that is
 * the reason. Grants are the caller's affair. */
void limits_share(struct books *books, unsigned tenant, unsigned place, unsigned kind,
		  const struct fair_share *share);

/* A tenant in total, and its mode; NULL if it is not on the books. */
const struct scope *limits_of_tenant(const struct collector *collector, const char *name,
				     enum mode *ret_mode);

/* Whether a limit of a port holds for the tenant: its own, its processes' or the host's. */
bool limits_of_ports(const struct collector *collector, const char *name);

#endif
