/* SPDX-License-Identifier: MIT */
/* What commands set over the files of a policy: counting and dropping it. Knows no key by name. */
#include <string.h>

#include "policy/keys.h"
#include "policy/origins.h"
#include "policy/policy.h"
#include "policy/when.h"

static unsigned values_count(unsigned sections, const void *structure)
{
	unsigned count = 0;

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };

		while (key->sections & sections && policy_key_next(key, structure, &place))
			count++;
	}
	return count;
}

static void values_drop(unsigned sections, void *structure, struct policy_origin **origins)
{
	policy_keys_release(sections, structure);
	policy_keys_unset(sections, structure);
	policy_origins_drop(origins);
}

/* A tenant's values, and its rules. */
static unsigned tenant_count(const struct policy *policy, const struct policy_tenant *tenant)
{
	unsigned count = values_count(POLICY_OF_TENANT, tenant);

	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		count += rule->tenant == tenant;
	return count;
}

static bool override_is_chosen(const char *chosen, const char *kind, const char *name)
{
	size_t length = strlen(kind);

	return !*chosen || (!strncmp(chosen, kind, length) && !strcmp(chosen + length, name));
}

/* Whether there is something below that the commands' section goes over: the built-in tenant, a
 * section of a file, or a pattern that has made the tenant. */
static bool override_is_possible(const struct policy_tenant *tenant, const struct policy_below *below)
{
	const struct policy_tenant *in_force = policy_tenant_find(below->in_force, tenant->name);

	return !strcmp(tenant->name, below->builtin) ||
	       policy_tenant_find(below->files, tenant->name) || (in_force && in_force->pattern);
}

unsigned policy_overrides(const struct policy *commands, const struct policy_below *below,
			  const char *section)
{
	unsigned count = 0;

	if (override_is_chosen(section, "host", "")) {
		count += values_count(POLICY_OF_POLICY, commands);
		for (const struct policy_when *when = commands->whens; when; when = when->next)
			count++;
	}
	if (override_is_chosen(section, "default", ""))
		count += values_count(POLICY_OF_TENANT, &commands->fallback);
	for (const struct policy_tenant *tenant = commands->tenants; tenant; tenant = tenant->next)
		if (override_is_chosen(section, "tenant ", tenant->name) &&
		    override_is_possible(tenant, below))
			count += tenant_count(commands, tenant);
	return count;
}

/* Those that are chosen and are set over something; only empty ones, if that is wanted. */
static void tenants_drop(struct policy *commands, const struct policy_below *below,
			 const char *section, bool only_empty)
{
	struct policy_tenant *tenant = commands->tenants, *next;

	for (; tenant; tenant = next) {
		next = tenant->next;
		if (override_is_chosen(section, "tenant ", tenant->name) &&
		    override_is_possible(tenant, below) &&
		    !(only_empty && tenant_count(commands, tenant)))
			policy_remove_tenant(commands, tenant->name);
	}
}

unsigned policy_reset(struct policy *commands, const struct policy_below *below, const char *section)
{
	unsigned count = policy_overrides(commands, below, section);

	if (override_is_chosen(section, "host", "")) {
		values_drop(POLICY_OF_POLICY, commands, &commands->origins);
		policy_whens_drop(commands);
	}
	if (override_is_chosen(section, "default", ""))
		values_drop(POLICY_OF_TENANT, &commands->fallback, &commands->fallback.origins);
	tenants_drop(commands, below, section, false);
	return count;
}

void policy_prune(struct policy *commands, const struct policy_below *below)
{
	tenants_drop(commands, below, "", true);
}
