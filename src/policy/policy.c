/* SPDX-License-Identifier: MIT */
/*
 * The model of a policy: its life, its tenants and rules, and which values are in
 * force for a tenant; see policy.h.
 */
#include "policy/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/limits.h"
#include "policy/origins.h"
#include "policy/when.h"

const char *const policy_switch_names[SWITCH_UNSET] = { "off", "on" };
const char *const policy_priority_names[PRIORITY_UNSET] = { "normal", "latency", "bulk" };

static void tenant_init(struct policy_tenant *tenant, const char *name)
{
	snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	policy_keys_unset(POLICY_OF_TENANT, tenant);
}

static void tenant_free(struct policy_tenant *tenant)
{
	policy_keys_release(POLICY_OF_TENANT, tenant);
	policy_origins_drop(&tenant->origins);
	free(tenant);
}

struct policy_tenant *policy_tenant_find(const struct policy *policy, const char *name)
{
	struct policy_tenant *tenant = policy->tenants;

	while (tenant && strcmp(tenant->name, name))
		tenant = tenant->next;
	return tenant;
}

/* The one of that name, or a new one while there are fewer than so many; those that are made from
 * patterns do not count. */
static int tenant_find_or_add(struct policy *policy, const char *name, unsigned most,
			      struct policy_tenant **ret_tenant, bool *ret_new)
{
	struct policy_tenant **end = &policy->tenants;
	unsigned tenants = 0;

	for (; *end && strcmp((*end)->name, name); end = &(*end)->next)
		tenants += !(*end)->pattern;
	*ret_new = !*end;
	if (!*end) {
		if (tenants >= most)
			return -E2BIG;
		*end = calloc(1, sizeof(**end));
		if (!*end)
			return -ENOMEM;
		tenant_init(*end, name);
	}
	*ret_tenant = *end;
	return 0;
}

int policy_tenant_add(struct policy *policy, const char *name, bool runtime,
		      struct policy_tenant **ret_tenant)
{
	bool is_new;
	int result = tenant_find_or_add(policy, name, POLICY_TENANTS, ret_tenant, &is_new);

	if (result == 0 && is_new)
		(*ret_tenant)->runtime = runtime;
	return result;
}

int policy_tenant_make(struct policy *policy, const char *name, struct policy_tenant *pattern)
{
	struct policy_tenant *tenant;
	bool is_new;
	int result = tenant_find_or_add(policy, name, UINT_MAX, &tenant, &is_new);

	if (result == 0)
		tenant->pattern = pattern;
	return result;
}

int policy_rule_add(struct policy *policy, struct policy_tenant *tenant,
		    const struct policy_rule *rule)
{
	struct policy_rule **end = &policy->rules, **place = NULL, *added;
	unsigned rules = 0;

	for (; *end; end = &(*end)->next, rules++) {
		if ((*end)->tenant == tenant && policy_rule_is_same(*end, rule))
			return 0;
		if (rule->first && !(*end)->first && !place)
			place = end;
	}
	if (!place)
		place = end;
	if (rules == POLICY_RULES)
		return -E2BIG;
	added = malloc(sizeof(*added));
	if (!added)
		return -ENOMEM;
	*added = *rule;
	added->tenant = tenant;
	added->next = *place;
	*place = added;
	return 0;
}

void policy_rules_drop(struct policy *policy, const struct policy_tenant *tenant)
{
	struct policy_rule **at = &policy->rules;

	while (*at) {
		struct policy_rule *rule = *at;

		if (rule->tenant == tenant) {
			*at = rule->next;
			free(rule);
		} else {
			at = &rule->next;
		}
	}
}

bool policy_rule_drop(struct policy *policy, const struct policy_tenant *tenant,
		      const struct policy_rule *rule)
{
	struct policy_rule **at = &policy->rules, *found;

	while (*at && ((*at)->tenant != tenant || !policy_rule_is_same(*at, rule)))
		at = &(*at)->next;
	found = *at;
	if (!found)
		return false;
	*at = found->next;
	free(found);
	return true;
}

struct policy *policy_new(void)
{
	struct policy *policy = calloc(1, sizeof(*policy));

	if (policy) {
		policy_keys_unset(POLICY_OF_POLICY, policy);
		tenant_init(&policy->fallback, "default");
	}
	return policy;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	while (policy->rules) {
		struct policy_rule *rule = policy->rules;

		policy->rules = rule->next;
		free(rule);
	}
	policy_whens_drop(policy);
	policy_origins_drop(&policy->origins);
	policy_origins_drop(&policy->fallback.origins);
	while (policy->tenants) {
		struct policy_tenant *tenant = policy->tenants;

		policy->tenants = tenant->next;
		tenant_free(tenant);
	}
	policy_keys_release(POLICY_OF_TENANT, &policy->fallback);
	policy_keys_release(POLICY_OF_POLICY, policy);
	free(policy);
}

int policy_remove_tenant(struct policy *policy, const char *name)
{
	struct policy_tenant **at = &policy->tenants, *tenant;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	tenant = *at;
	if (!tenant)
		return -ENOENT;
	policy_rules_drop(policy, tenant);
	*at = tenant->next;
	for (struct policy_tenant *made = policy->tenants; made; made = made->next) {
		if (made->pattern == tenant)
			made->pattern = NULL;
		if (made->base == tenant)
			made->base = NULL;
	}
	tenant_free(tenant);
	return 0;
}

/* ---- values in force */

/* The tenant of that name; what the policy does not say of the tenant "default" is [default]. */
static struct policy_tenant *base_find(struct policy *policy, const char *name)
{
	struct policy_tenant *base = *name ? policy_tenant_find(policy, name) : NULL;

	return !base && !strcmp(name, policy->fallback.name) ? &policy->fallback : base;
}

void policy_bases_find(struct policy *policy)
{
	for (struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		tenant->base = base_find(policy, tenant->within);
	/* One that is within itself, over whatever others, is within nothing; those that are within
	 * it, and it is not within, are. */
	for (struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		const struct policy_tenant *base = tenant->base;

		for (unsigned steps = 0; base && base != tenant && steps < POLICY_TENANTS; steps++)
			base = base->base;
		if (base == tenant)
			tenant->base = NULL;
	}
}

const struct policy_tenant *policy_tenant_below(const struct policy_tenant *tenant)
{
	return tenant->pattern ? tenant->pattern : tenant->base;
}

/* The tenant's value of a key with one value, or that of its pattern, of the one that it is within or
 * of [default], or the initial one. */
static const void *tenant_value(const struct policy *policy, const struct policy_tenant *tenant,
				enum policy_key_number number)
{
	const struct policy_key *key = &policy_keys[number];
	const void *value = NULL;

	for (; tenant && !value; tenant = policy_tenant_below(tenant))
		value = policy_key_get(key, tenant, NULL);
	if (!value)
		value = policy_key_get(key, &policy->fallback, NULL);
	return value ? value : key->initial;
}

enum mode policy_tenant_mode(const struct policy *policy, const struct policy_tenant *tenant)
{
	return *(const enum mode *)tenant_value(policy, tenant, POLICY_KEY_mode);
}

bool policy_tenant_guard(const struct policy *policy, const struct policy_tenant *tenant)
{
	return *(const enum policy_switch *)tenant_value(policy, tenant, POLICY_KEY_guard) ==
	       POLICY_ON;
}

const char *policy_tenant_devices(const struct policy *policy, const struct policy_tenant *tenant)
{
	return tenant_value(policy, tenant, POLICY_KEY_devices);
}

/* The keys of the classes follow each other. */
struct rate policy_tenant_rate(const struct policy *policy, const struct policy_tenant *tenant,
			       enum rate_owner owner, enum rate_class class)
{
	unsigned first = owner == RATE_OF_TENANT ? POLICY_KEY_rate_create_qp :
						   POLICY_KEY_process_rate_create_qp;

	const enum policy_key_number number = (enum policy_key_number)(first + class);
	struct rate rate = *(const struct rate *)tenant_value(policy, tenant, number);

	for (; tenant && tenant->base; tenant = tenant->base)
		rate = rate_lower(rate, *(const struct rate *)tenant_value(policy, tenant->base, number));
	return rate;
}

enum rate_action policy_tenant_rate_action(const struct policy *policy,
					   const struct policy_tenant *tenant)
{
	return *(const enum rate_action *)tenant_value(policy, tenant, POLICY_KEY_rate_action);
}

uint64_t policy_tenant_max_delay(const struct policy *policy, const struct policy_tenant *tenant)
{
	return *(const uint64_t *)tenant_value(policy, tenant, POLICY_KEY_max_delay);
}

uint64_t policy_tenant_classes(const struct policy *policy, const struct policy_tenant *tenant)
{
	const uint32_t *class = tenant_value(policy, tenant, POLICY_KEY_traffic_class);
	const uint32_t *level = tenant_value(policy, tenant, POLICY_KEY_service_level);

	return classes_make(*class, *level);
}

uint32_t policy_tenant_weight(const struct policy *policy, const struct policy_tenant *tenant)
{
	return *(const uint32_t *)tenant_value(policy, tenant, POLICY_KEY_weight);
}

/* The value of a key of [host], or the initial one. */
static const void *host_value(const struct policy *policy, enum policy_key_number number)
{
	const struct policy_key *key = &policy_keys[number];
	const void *value = policy_key_get(key, policy, NULL);

	return value ? value : key->initial;
}

enum policy_priority policy_tenant_priority(const struct policy *policy,
					    const struct policy_tenant *tenant)
{
	return *(const enum policy_priority *)tenant_value(policy, tenant, POLICY_KEY_priority);
}

/* The lower of the tenant's own rate and of those of the ones that it is within. */
static struct pace_rate tenant_pace_rate(const struct policy *policy,
					 const struct policy_tenant *tenant,
					 enum policy_key_number number, uint64_t least)
{
	struct pace_rate rate = *(const struct pace_rate *)tenant_value(policy, tenant, number);

	for (; tenant && tenant->base; tenant = tenant->base)
		rate = pace_rate_lower(
			rate, *(const struct pace_rate *)tenant_value(policy, tenant->base, number),
			least);
	return rate;
}

struct pace_settings policy_tenant_pace(const struct policy *policy,
					const struct policy_tenant *tenant)
{
	struct pace_settings pace = { .is_counted = 0 };
	const struct {
		enum policy_key_number number;
		struct pace_rate *rate;
		uint64_t least;
	} rows[] = {
		{ POLICY_KEY_pace_bytes, &pace.bytes, PACE_BYTES_LEAST },
		{ POLICY_KEY_pace_ops, &pace.operations, PACE_OPERATIONS_LEAST },
		{ POLICY_KEY_process_pace_bytes, &pace.process_bytes, PACE_BYTES_LEAST },
		{ POLICY_KEY_process_pace_ops, &pace.process_operations, PACE_OPERATIONS_LEAST },
		{ POLICY_KEY_qp_pace_bytes, &pace.qp_bytes, PACE_BYTES_LEAST },
		{ POLICY_KEY_qp_pace_ops, &pace.qp_operations, PACE_OPERATIONS_LEAST },
	};
	const struct pace_rate *floor = tenant_value(policy, tenant, POLICY_KEY_bulk_floor);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pace_rate rate =
			tenant_pace_rate(policy, tenant, rows[i].number, rows[i].least);

		if (pace_rate_is_limit(&rate))
			*rows[i].rate = rate;
	}
	pace.floor = floor->per_second;
	pace.max_delay_ns =
		*(const uint64_t *)tenant_value(policy, tenant, POLICY_KEY_pace_max_delay);
	return pace;
}

bool policy_guard_writes(const struct policy *policy)
{
	return *(const enum policy_switch *)host_value(policy, POLICY_KEY_guard_writes) ==
	       POLICY_ON;
}

unsigned policy_pressure(const struct policy *policy)
{
	return *(const uint32_t *)host_value(policy, POLICY_KEY_pressure);
}

/* The amount that a section sets; NULL. */
static const uint64_t *amount_find(const struct policy_tenant *section, const struct policy_key *key,
				   const char *device, enum kind kind)
{
	const struct policy_limits *limits =
		(const void *)((const char *)section + key->offset);
	const uint64_t *amount = policy_limits_find(limits, device, kind);

	return amount && *amount != UNSET ? amount : NULL;
}

/* The same for a key that has amounts for each kind. */
static uint64_t tenant_amount(const struct policy *policy, const struct policy_tenant *tenant,
			      enum policy_key_number number, const char *device, enum kind kind)
{
	const struct policy_key *key = &policy_keys[number];
	/* How many tenants a pattern makes, or are within another one, is not known: nothing but a
	 * section of their own reserves for them. */
	bool is_one_of_many = tenant && (policy_tenant_below(tenant) ||
					 policy_name_is_pattern(tenant->name));
	bool own_only = number == POLICY_KEY_guarantee && is_one_of_many;

	const uint64_t *amount = NULL;

	for (const struct policy_tenant *layer = tenant; layer && !amount;
	     layer = own_only ? NULL : policy_tenant_below(layer))
		amount = amount_find(layer, key, device, kind);
	if (!amount && !own_only)
		amount = amount_find(&policy->fallback, key, device, kind);
	return amount ? *amount : *(const uint64_t *)key->initial;
}

uint64_t policy_tenant_limit(const struct policy *policy, const struct policy_tenant *tenant,
			     bool of_each_process, const char *device, enum kind kind)
{
	enum policy_key_number number = of_each_process ? POLICY_KEY_process : POLICY_KEY_all;
	uint64_t limit = tenant_amount(policy, tenant, number, device, kind);

	for (; tenant && tenant->base; tenant = tenant->base) {
		uint64_t most = tenant_amount(policy, tenant->base, number, device, kind);

		limit = most < limit ? most : limit;
	}
	return limit;
}

uint64_t policy_tenant_guarantee(const struct policy *policy, const struct policy_tenant *tenant,
				 const char *device, enum kind kind)
{
	return tenant_amount(policy, tenant, POLICY_KEY_guarantee, device, kind);
}
