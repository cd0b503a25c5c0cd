/* SPDX-License-Identifier: MIT */
/*
 * The model of a policy: limits, tenants and rules, and what they mean for a
 * process; see policy.h. How they are written down is known to policyfile.c.
 */
#include "policy/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const policy_mode_names[POLICY_MODE_UNSET] = { "enforce", "warn", "audit" };
const char *const policy_switch_names[POLICY_SWITCH_UNSET] = { "off", "on" };

static void limits_unset(uint64_t limit[KIND_COUNT])
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		limit[kind] = POLICY_UNSET;
}

static bool limits_are_unset(const uint64_t limit[KIND_COUNT])
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (limit[kind] != POLICY_UNSET)
			return false;
	return true;
}

static struct policy_device *device_find(const struct policy_limits *limits, const char *name)
{
	for (unsigned i = 0; i < limits->devices; i++)
		if (!strcmp(limits->device[i].name, name))
			return &limits->device[i];
	return NULL;
}

static int device_add(struct policy_limits *limits, const char *name,
		      struct policy_device **ret_device)
{
	struct policy_device *grown, *device;

	if (limits->devices == POLICY_DEVICES)
		return -E2BIG;
	grown = reallocarray(limits->device, limits->devices + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	limits->device = grown;
	device = &grown[limits->devices++];
	snprintf(device->name, sizeof(device->name), "%s", name);
	limits_unset(device->limit);
	*ret_device = device;
	return 0;
}

int policy_limit_set(struct policy_limits *limits, const char *device, enum kind kind,
		     uint64_t value)
{
	struct policy_device *row;
	int result;

	if (!device) {
		limits->total[kind] = value;
		return 0;
	}
	row = device_find(limits, device);
	if (!row) {
		if (value == POLICY_UNSET)
			return 0;
		result = device_add(limits, device, &row);
		if (result < 0)
			return result;
	}
	row->limit[kind] = value;
	if (limits_are_unset(row->limit))
		*row = limits->device[--limits->devices];
	return 0;
}

static void limits_init(struct policy_limits *limits)
{
	limits_unset(limits->total);
	limits->devices = 0;
	limits->device = NULL;
}

static int row_overlay(struct policy_limits *limits, const char *device,
		       const uint64_t over[KIND_COUNT])
{
	int result = 0;

	for (int kind = 0; kind < KIND_COUNT && result == 0; kind++)
		if (over[kind] != POLICY_UNSET)
			result = policy_limit_set(limits, device, (enum kind)kind, over[kind]);
	return result;
}

static int limits_overlay(struct policy_limits *limits, const struct policy_limits *over)
{
	int result = row_overlay(limits, NULL, over->total);

	for (unsigned i = 0; i < over->devices && result == 0; i++)
		result = row_overlay(limits, over->device[i].name, over->device[i].limit);
	return result;
}

static void tenant_init(struct policy_tenant *tenant, const char *name)
{
	snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	tenant->mode = POLICY_MODE_UNSET;
	tenant->guard = POLICY_SWITCH_UNSET;
	limits_init(&tenant->all);
	limits_init(&tenant->process);
}

static void tenant_release(struct policy_tenant *tenant)
{
	free(tenant->all.device);
	free(tenant->process.device);
}

struct policy_tenant *policy_tenant_find(const struct policy *policy, const char *name)
{
	struct policy_tenant *tenant = policy->tenants;

	while (tenant && strcmp(tenant->name, name))
		tenant = tenant->next;
	return tenant;
}

int policy_tenant_add(struct policy *policy, const char *name, bool runtime,
		      struct policy_tenant **ret_tenant)
{
	struct policy_tenant **end = &policy->tenants;
	unsigned tenants = 0;

	for (; *end && strcmp((*end)->name, name); end = &(*end)->next)
		tenants++;
	if (!*end) {
		if (tenants == POLICY_TENANTS)
			return -E2BIG;
		*end = calloc(1, sizeof(**end));
		if (!*end)
			return -ENOMEM;
		tenant_init(*end, name);
		(*end)->runtime = runtime;
	}
	*ret_tenant = *end;
	return 0;
}

static int tenant_overlay(struct policy_tenant *tenant, const struct policy_tenant *over)
{
	int result = limits_overlay(&tenant->all, &over->all);

	if (over->mode != POLICY_MODE_UNSET)
		tenant->mode = over->mode;
	if (over->guard != POLICY_SWITCH_UNSET)
		tenant->guard = over->guard;
	return result < 0 ? result : limits_overlay(&tenant->process, &over->process);
}

static bool same_ids(const struct policy_ids *a, const struct policy_ids *b)
{
	return a->count == b->count && !memcmp(a->range, b->range, a->count * sizeof(a->range[0]));
}

static bool same_conditions(const struct policy_rule *a, const struct policy_rule *b)
{
	return same_ids(&a->uid, &b->uid) && same_ids(&a->gid, &b->gid) &&
	       !strcmp(a->cgroup, b->cgroup) && !strcmp(a->container, b->container) &&
	       !strcmp(a->job, b->job);
}

int policy_rule_add(struct policy *policy, struct policy_tenant *tenant,
		    const struct policy_rule *rule)
{
	struct policy_rule **end = &policy->rules;
	unsigned rules = 0;

	for (; *end; end = &(*end)->next, rules++)
		if ((*end)->tenant == tenant && same_conditions(*end, rule))
			return 0;
	if (rules == POLICY_RULES)
		return -E2BIG;
	*end = malloc(sizeof(**end));
	if (!*end)
		return -ENOMEM;
	**end = *rule;
	(*end)->tenant = tenant;
	(*end)->next = NULL;
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

struct policy *policy_new(void)
{
	struct policy *policy = calloc(1, sizeof(*policy));

	if (policy) {
		limits_init(&policy->host);
		policy->guard_writes = POLICY_SWITCH_UNSET;
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
	while (policy->tenants) {
		struct policy_tenant *tenant = policy->tenants;

		policy->tenants = tenant->next;
		tenant_release(tenant);
		free(tenant);
	}
	tenant_release(&policy->fallback);
	free(policy->host.device);
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
	tenant_release(tenant);
	free(tenant);
	return 0;
}

static void text_overlay(char *text, size_t size, const char *over)
{
	if (over[0])
		snprintf(text, size, "%s", over);
}

static int overlay(struct policy *policy, const struct policy *over)
{
	struct policy_tenant *tenant;
	int result;

	text_overlay(policy->socket, sizeof(policy->socket), over->socket);
	text_overlay(policy->state, sizeof(policy->state), over->state);
	text_overlay(policy->admin_group, sizeof(policy->admin_group), over->admin_group);
	if (over->admin_group[0])
		policy->admin_gid = over->admin_gid;
	if (over->guard_writes != POLICY_SWITCH_UNSET)
		policy->guard_writes = over->guard_writes;
	result = limits_overlay(&policy->host, &over->host);
	if (result == 0)
		result = tenant_overlay(&policy->fallback, &over->fallback);
	for (const struct policy_tenant *from = over->tenants; from && result == 0;
	     from = from->next) {
		result = policy_tenant_add(policy, from->name, from->runtime, &tenant);
		if (result == 0)
			result = tenant_overlay(tenant, from);
	}
	for (const struct policy_rule *rule = over->rules; rule && result == 0; rule = rule->next)
		result = policy_rule_add(policy, policy_tenant_find(policy, rule->tenant->name),
					 rule);
	return result;
}

struct policy *policy_merge(const struct policy *base, const struct policy *over)
{
	struct policy *policy = policy_new();
	int result;

	if (!policy)
		return NULL;
	text_overlay(policy->file, sizeof(policy->file), over ? over->file : "");
	text_overlay(policy->file, sizeof(policy->file), base->file);
	result = overlay(policy, base);
	if (result == 0 && over)
		result = overlay(policy, over);
	if (result < 0) {
		policy_free(policy);
		errno = -result;
		return NULL;
	}
	return policy;
}

/* ---- what is missing */

struct missing {
	const char *section, *name; /* of the tenant, or "" */
	char *problem;
};

static __attribute__((format(printf, 2, 3))) bool misses(const struct missing *missing,
							 const char *format, ...)
{
	int used = snprintf(missing->problem, POLICY_PROBLEM, "[%s%s%s] ", missing->section,
			    missing->name[0] ? " " : "", missing->name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(missing->problem + used, (size_t)(POLICY_PROBLEM - used), format, arguments);
	va_end(arguments);
	return true;
}

static bool row_lacks(const struct missing *missing, const uint64_t now[KIND_COUNT],
		      const uint64_t earlier[KIND_COUNT], const char *scope, const char *device)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (earlier[kind] != POLICY_UNSET && (!now || now[kind] == POLICY_UNSET))
			return misses(missing, "has no limit '%s%s%s%s%s' any more", scope,
				      device ? "device." : "", device ? device : "",
				      device ? "." : "", kind_rows[kind].name);
	return false;
}

static bool limits_lack(const struct missing *missing, const struct policy_limits *now,
			const struct policy_limits *earlier, const char *scope)
{
	if (row_lacks(missing, now->total, earlier->total, scope, NULL))
		return true;
	for (unsigned i = 0; i < earlier->devices; i++) {
		const struct policy_device *before = &earlier->device[i];
		const struct policy_device *row = device_find(now, before->name);

		if (row_lacks(missing, row ? row->limit : NULL, before->limit, scope, before->name))
			return true;
	}
	return false;
}

static bool owner_lacks(const struct missing *missing, const struct policy_tenant *now,
			const struct policy_tenant *earlier)
{
	if (earlier->mode != POLICY_MODE_UNSET && now->mode == POLICY_MODE_UNSET)
		return misses(missing, "has no mode any more");
	if (earlier->guard != POLICY_SWITCH_UNSET && now->guard == POLICY_SWITCH_UNSET)
		return misses(missing, "has no guard any more");
	return limits_lack(missing, &now->all, &earlier->all, "") ||
	       limits_lack(missing, &now->process, &earlier->process, "process.");
}

static unsigned rules_count(const struct policy *policy, const struct policy_tenant *tenant)
{
	unsigned count = 0;

	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		count += rule->tenant == tenant;
	return count;
}

bool policy_lacks(const struct policy *policy, const struct policy *earlier,
		  char problem[POLICY_PROBLEM])
{
	struct missing missing = { "host", "", problem };
	const struct policy_tenant *now;

	if (earlier->guard_writes != POLICY_SWITCH_UNSET &&
	    policy->guard_writes == POLICY_SWITCH_UNSET)
		return misses(&missing, "has no guard_writes any more");
	if (limits_lack(&missing, &policy->host, &earlier->host, ""))
		return true;
	missing.section = "default";
	if (owner_lacks(&missing, &policy->fallback, &earlier->fallback))
		return true;
	missing.section = "tenant";
	for (const struct policy_tenant *tenant = earlier->tenants; tenant; tenant = tenant->next) {
		missing.name = tenant->name;
		now = policy_tenant_find(policy, tenant->name);
		if (!now)
			return misses(&missing, "is missing");
		if (owner_lacks(&missing, now, tenant))
			return true;
		if (rules_count(policy, now) < rules_count(earlier, tenant))
			return misses(&missing, "has fewer match lines than before");
	}
	return false;
}

/* ---- limits */

static uint64_t limits_get(const struct policy_limits *limits, const char *device, enum kind kind)
{
	const struct policy_device *row;

	if (!device)
		return limits->total[kind];
	row = device_find(limits, device);
	return row ? row->limit[kind] : POLICY_UNSET;
}

uint64_t policy_limit(const struct policy_limits *limits, const char *device, enum kind kind)
{
	uint64_t limit = limits_get(limits, device, kind);

	return limit == POLICY_UNSET ? SIZE_UNLIMITED : limit;
}

static const struct policy_limits *limits_of(const struct policy_tenant *tenant,
					     bool of_each_process)
{
	return of_each_process ? &tenant->process : &tenant->all;
}

uint64_t policy_tenant_limit(const struct policy *policy, const struct policy_tenant *tenant,
			     bool of_each_process, const char *device, enum kind kind)
{
	uint64_t limit = POLICY_UNSET;

	if (tenant)
		limit = limits_get(limits_of(tenant, of_each_process), device, kind);
	if (limit != POLICY_UNSET)
		return limit;
	return policy_limit(limits_of(&policy->fallback, of_each_process), device, kind);
}

enum policy_mode policy_tenant_mode(const struct policy *policy, const struct policy_tenant *tenant)
{
	if (tenant && tenant->mode != POLICY_MODE_UNSET)
		return tenant->mode;
	if (policy->fallback.mode != POLICY_MODE_UNSET)
		return policy->fallback.mode;
	return POLICY_ENFORCE;
}

bool policy_tenant_guard(const struct policy *policy, const struct policy_tenant *tenant)
{
	if (tenant && tenant->guard != POLICY_SWITCH_UNSET)
		return tenant->guard == POLICY_ON;
	return policy->fallback.guard == POLICY_ON;
}
