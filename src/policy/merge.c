/* SPDX-License-Identifier: MIT */
/* Merging: one policy over another. Knows no key by name. */
#include <errno.h>
#include <stdio.h>

#include "policy/keys.h"
#include "policy/origins.h"
#include "policy/policy.h"
#include "policy/when.h"

static int keys_merge(unsigned sections, void *structure, struct policy_origin **origins,
		      const void *over, const struct policy_origin *over_origins)
{
	int result = 0;

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };
		const void *value;

		while (key->sections & sections && result == 0 &&
		       (value = policy_key_next(key, over, &place))) {
			result = policy_key_set(key, structure, &place, value);
			if (result == 0)
				result = policy_origin_copy(origins, over_origins, key, &place);
		}
	}
	return result;
}

static int tenant_merge(struct policy_tenant *tenant, const struct policy_tenant *over)
{
	return keys_merge(POLICY_OF_TENANT, tenant, &tenant->origins, over, over->origins);
}

static int policy_overlay(struct policy *policy, const struct policy *over)
{
	struct policy_tenant *tenant;
	int result =
		keys_merge(POLICY_OF_POLICY, policy, &policy->origins, over, over->origins);

	if (result == 0)
		result = tenant_merge(&policy->fallback, &over->fallback);
	/* Those that are made from patterns after the patterns. */
	for (const struct policy_tenant *from = over->tenants; from && result == 0;
	     from = from->next)
		if (!from->pattern)
			result = policy_tenant_add(policy, from->name, from->runtime, &tenant);
	for (const struct policy_tenant *from = over->tenants; from && result == 0;
	     from = from->next) {
		if (from->pattern)
			result = policy_tenant_make(
				policy, from->name,
				policy_tenant_find(policy, from->pattern->name));
		if (result == 0)
			result = tenant_merge(policy_tenant_find(policy, from->name), from);
	}
	for (const struct policy_rule *rule = over->rules; rule && result == 0; rule = rule->next)
		result = policy_rule_add(policy, policy_tenant_find(policy, rule->tenant->name),
					 rule);
	for (const struct policy_when *when = over->whens; when && result == 0; when = when->next)
		result = policy_when_add(policy, when);
	return result;
}

struct policy *policy_merge(const struct policy *base, const struct policy *over)
{
	struct policy *policy = policy_new();
	const char *file = !base->file[0] && over ? over->file : base->file;
	int result;

	if (!policy)
		return NULL;
	snprintf(policy->file, sizeof(policy->file), "%s", file);
	result = policy_overlay(policy, base);
	if (result == 0 && over)
		result = policy_overlay(policy, over);
	if (result < 0) {
		policy_free(policy);
		errno = -result;
		return NULL;
	}
	policy_bases_find(policy);
	return policy;
}
