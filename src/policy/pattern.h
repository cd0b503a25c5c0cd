/* SPDX-License-Identifier: MIT */
/*
 * Patterns: sections such as [tenant job-%j], of which the collector makes a tenant for each job,
 * container, user, namespace or pod. The name stands for the names of all of them.
 */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include "policy/conditions.h"
#include "policy/policy.h"
#include "policy/problem.h"

/* What is wrong with a name that has a '%', and what is expected, to be translated; NULL: it is the
 * name of a pattern. */
const char *policy_pattern_mistake(const char *name);

/* A match line, without "match = ", that such a pattern can have. */
const char *policy_pattern_example(const char *name);

/* Whether the pattern may make a tenant of that name; false if the first is no pattern. */
bool policy_pattern_fits(const char *pattern, const char *name);

/* Whether a match line of the pattern gives each placeholder its value. 0, or -EINVAL with a
 * problem. */
int policy_pattern_check_rule(const struct policy_source *source, const char *name,
			      const struct policy_rule *rule);

/* The name of the tenant for a process that has met a match line of the pattern. */
void policy_pattern_expand(const char *name, const struct policy_facts *facts,
			   char ret_name[NAME_SIZE]);

#endif
