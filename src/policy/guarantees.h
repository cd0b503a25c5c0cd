/* SPDX-License-Identifier: MIT */
/*
 * Guarantees that cannot be kept are found when all files are read. By then the lines are gone, so
 * that the reader notes here which line set which guarantee.
 */
#ifndef POLICY_GUARANTEES_H
#define POLICY_GUARANTEES_H

#include "policy/keys.h"
#include "policy/problem.h"

#define TENANT_OTHERS "default" /* of processes that no rule names; a policy may name it, too */

struct policy_origin {
	struct policy_origin *next;
	const struct policy_tenant *tenant; /* the section; that of [default] is the fallback */
	struct policy_place place;
	unsigned line;
	char file[POLICY_PATH];
};

/* A line of a file set a guarantee. -ENOMEM. */
int policy_origin_add(struct policy *policy, const struct policy_source *source,
		      const struct policy_tenant *tenant, const struct policy_place *place);
void policy_origins_drop(struct policy *policy);

#endif
