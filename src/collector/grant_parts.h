/* SPDX-License-Identifier: MIT */
/* What the parts of granting share (grants.c and grant_*.c), and nobody else. */
#ifndef COLLECTOR_GRANT_PARTS_H
#define COLLECTOR_GRANT_PARTS_H

#include "collector/grants.h"
#include "terms/verdict.h"

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- grant_levels.c: the limits above a lease */

/* One of them. */
struct level {
	enum limit_scope scope;
	wide granted;
	uint64_t limit;
	bool own; /* the process's environment requested the limit */
	uint64_t configured; /* by the policy, if that is more: a part of it is a tenant's share, or
				is reserved for others; otherwise 0 */
};

/* Which limits count: the policy's, and those that the process's environment requested, which
 * may lower the policy's. */
struct level_filter {
	bool policy;
	bool requested;
};

extern const struct level_filter level_filter_all, level_filter_policy;

/* The limits that refuse. What is over the others is granted, and told of. */
struct level_filter level_filter_enforced(const struct books *books, unsigned lease);

/* All of them, the narrowest scope first. */
void levels_above(const struct books *books, unsigned lease, unsigned kind,
		  struct level_filter filter, struct level ret[SCOPES]);
/* Lowers the limits of host and device by what is reserved for other tenants, or held by processes
 * that are not registered. */
void levels_reserve(const struct books *books, unsigned lease, unsigned kind,
		    struct level level[SCOPES]);
uint64_t level_room(const struct level *level);
/* Whether more is granted on a lease than some limit of the policy above it allows. */
bool levels_exceeded(const struct books *books, unsigned lease, unsigned kind);
/* What is granted to a member on a device: two of its rows may count one, the nameless one. */
wide levels_member_on_device(const struct books *books, unsigned member, unsigned device,
			     unsigned kind);

/* ---- grant_sweep.c: taking credit back */

/* Which leases a sweep goes through: those of a scope that have a usage page. */
struct sweep {
	enum limit_scope scope;
	unsigned tenant, member, device;
};

/* Takes idle credit of a kind back from all leases in the range. While a limit above is exceeded
 * the caps stay closed; with `hold` nothing is kept open for a promise either. */
void sweep_range(struct books *books, const struct sweep *range, unsigned kind, bool hold);

/* What is used now, or could still be, stays granted; the rest does not. */
void lease_grant_settle(struct books *books, unsigned lease, unsigned kind);
/* The cap is what is granted, unless a limit above is exceeded. */
void lease_cap_raise(struct books *books, unsigned lease, unsigned kind);

#endif
