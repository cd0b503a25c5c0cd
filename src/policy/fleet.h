/* SPDX-License-Identifier: MIT */
/*
 * The directory through which rdma_fleet tells the collector what a fleet decides: a policy, and
 * limits that count only while the host has a lease. rdma_fleet writes it and the collector reads
 * it; neither trusts the other with more. Knows no network.
 */
#ifndef POLICY_FLEET_H
#define POLICY_FLEET_H

#include "policy/policy.h"

/* Read in this order; each replaces values of the one before. */
#define FLEET_POLICY "policy.conf" /* of all hosts */
#define FLEET_KEPT "kept.conf"	   /* shares of quotas that the host has without a lease */
#define FLEET_LEASED "leased.conf" /* shares that end with the lease */

/* "BOOT_ID NANOSECONDS": until when leased.conf counts, by CLOCK_BOOTTIME of that boot. A later end than
 * any lease can have does not count. */
#define FLEET_LEASE "lease"

enum { FLEET_LEASE_TEXT = 80, FLEET_LEASE_MOST_S = 3600 };

/* What the directory says. */
struct policy_fleet {
	struct policy *kept;   /* without a lease */
	struct policy *leased; /* NULL: no lease, or it has ended */
	uint64_t until_ns;     /* the end of the lease; 0: no lease */
	bool has_policy, has_kept; /* there are such files */
	uint64_t sum;	       /* of the bytes of the files that count: another one, other limits */
};

/*
 * Reads the files. Accepts only those that belong to the owner of the directory, or to root, and that
 * nobody else can write, and in them only sections of limits: no [collector]. 0, also when there
 * are no files; -errno with a problem, and nothing is changed.
 */
int policy_fleet_read(const char *directory, uint64_t now_ns, struct policy_fleet *ret_fleet,
		      char problem[PROBLEM_SIZE]);
void policy_fleet_free(struct policy_fleet *fleet);

/* The line of the file FLEET_LEASE, for this boot. -errno if the kernel does not tell it. */
int policy_fleet_lease_print(uint64_t until_ns, char ret_text[FLEET_LEASE_TEXT]);

/* -EINVAL with a problem if the policy has a key of [collector]. */
int policy_fleet_check(const struct policy *policy, const char *file, char problem[PROBLEM_SIZE]);

#endif
