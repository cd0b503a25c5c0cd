/* SPDX-License-Identifier: MIT */
/*
 * Fair shares: the limits of all tenants for one kind, on the host or on one device, while it is
 * under pressure. A pure function of numbers: it knows no policy, no books, no sockets and no time.
 * docs/fair-shares.md has the rule in words, with an example.
 */
#ifndef COLLECTOR_FAIR_SHARES_H
#define COLLECTOR_FAIR_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "terms/fair.h"
#include "terms/terms.h"

enum { FAIR_TENANTS_MAX = 1024 };

struct fair_tenant {
	uint64_t guarantee; /* is reserved and never lent; counts only up to the limit */
	uint64_t limit;	    /* as configured; may be UNLIMITED */
	uint64_t used;	    /* is held now, credit included */
	uint64_t demand;    /* used and what was asked for lately; less than used counts as used */
	uint32_t weight;    /* 1 to 10000; 0 counts as 1 */
};

struct fair_share {
	uint64_t share;	    /* where the tenant ends when all others have given back */
	uint64_t effective; /* the limit in force now: less than share while FAIR_WAITING */
	enum fair_reason reason;
};

/*
 * Computes the shares of COUNT tenants in RET_SHARES (in the same order), in time proportional to
 * COUNT. CAPACITY is the limit of the host or device. Without PRESSURE, or with an unlimited
 * capacity, the configured limits are in force.
 *
 * Under pressure the sum of max(used, effective) over all tenants is at most the capacity, and
 * effective is never below the guarantee. So each tenant may create up to its limit in force
 * without a look at the others, and unused guarantees stay free. That is possible as long as what
 * is held and the unused guarantees fit into the capacity. If they do not (a limit was cut), the
 * tenants above their shares drain, and no other gets more than it holds or is guaranteed.
 *
 * Returns -E2BIG, and writes nothing, if there are more than FAIR_TENANTS_MAX.
 */
int fair_shares(const struct fair_tenant *tenants, unsigned count, uint64_t capacity, bool pressure,
		struct fair_share *ret_shares);

/*
 * What of the capacity is neither held nor reserved by a guarantee. Configured limits alone do not
 * keep the guarantees of others free: without pressure, whoever grants an amount beyond a tenant's
 * guarantee must grant at most this.
 */
uint64_t fair_unreserved(const struct fair_tenant *tenants, unsigned count, uint64_t capacity);

#endif
