/* SPDX-License-Identifier: MIT */
/*
 * What a policy lacks of an earlier one: files that an editor, a full disk or a
 * stopped copy has cut must not lift a limit. Knows no key by name. The keys of
 * [collector] count only when a collector starts, and are not compared.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/translation.h"
#include "policy/keys.h"
#include "policy/policy.h"
#include "policy/when.h"

struct missing {
	const char *section, *name; /* of the tenant, or "" */
	char *problem;
};

static __attribute__((format(printf, 2, 3))) bool missing_found(const struct missing *missing,
								const char *format, ...)
{
	int used = snprintf(missing->problem, PROBLEM_SIZE, "[%s%s%s] ", missing->section,
			    missing->name[0] ? " " : "", missing->name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(missing->problem + used, (size_t)(PROBLEM_SIZE - used), _(format), arguments);
	va_end(arguments);
	return true;
}

static bool keys_lack(const struct missing *missing, unsigned sections, const void *now,
		      const void *earlier)
{
	char name[POLICY_KEY_NAME];

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };

		while (key->sections & sections && policy_key_next(key, earlier, &place)) {
			if (policy_key_get(key, now, &place))
				continue;
			policy_key_print(key, &place, name);
			return key->type->shape == POLICY_PER_KIND ?
				       missing_found(missing, "has no limit '%s' any more", name) :
				       missing_found(missing, "has no %s any more", name);
		}
	}
	return false;
}

static unsigned rules_count(const struct policy *policy, const struct policy_tenant *tenant)
{
	unsigned count = 0;

	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		count += rule->tenant == tenant;
	return count;
}

static unsigned whens_count(const struct policy *policy)
{
	unsigned count = 0;

	for (const struct policy_when *when = policy->whens; when; when = when->next)
		count++;
	return count;
}

bool policy_lacks(const struct policy *policy, const struct policy *earlier,
		  char problem[PROBLEM_SIZE])
{
	struct missing missing = { "host", "", problem };
	const struct policy_tenant *now;

	if (keys_lack(&missing, POLICY_IN_HOST, policy, earlier))
		return true;
	if (whens_count(policy) < whens_count(earlier))
		return missing_found(&missing, "has fewer when lines than before");
	missing.section = "default";
	if (keys_lack(&missing, POLICY_IN_DEFAULT, &policy->fallback, &earlier->fallback))
		return true;
	missing.section = "tenant";
	for (const struct policy_tenant *tenant = earlier->tenants; tenant; tenant = tenant->next) {
		missing.name = tenant->name;
		now = policy_tenant_find(policy, tenant->name);
		if (!now)
			return missing_found(&missing, "is missing");
		if (keys_lack(&missing, POLICY_IN_TENANT, now, tenant))
			return true;
		if (rules_count(policy, now) < rules_count(earlier, tenant))
			return missing_found(&missing, "has fewer match lines than before");
	}
	return false;
}
