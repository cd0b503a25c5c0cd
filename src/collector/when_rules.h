/* SPDX-License-Identifier: MIT */
/*
 * The policy's when lines: which of them are in force. Their conditions are looked at each
 * second; what a line sets is put over the other layers of the policy while it is in force.
 */
#ifndef COLLECTOR_WHEN_RULES_H
#define COLLECTOR_WHEN_RULES_H

#include "base/problem.h"
#include "policy/policy.h"

struct collector;

struct when_rule {
	struct policy_when when; /* as it was in the policy that was put into force last */
	bool in_force;
	uint64_t since_ns; /* CLOCK_REALTIME: of the last change; 0: the rule has not changed yet */
	uint64_t used, limit;
	char problem[PROBLEM_SIZE]; /* why it could not be applied; "" */
};

struct when_rules {
	unsigned count;
	struct when_rule rule[POLICY_WHENS];
};

/* Takes the lines of a policy that is about to be put into force, of which no rule has changed
 * anything yet, and applies those that hold. */
void when_rules_apply(struct collector *collector, struct policy *policy);

#endif
