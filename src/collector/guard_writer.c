/* SPDX-License-Identifier: MIT */
/* What the kernel is told: slots, limits, rules and cgroups. */
#include "collector/guard_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what the kernel is told */

bool guards_slot_holds(const struct guards *guards, __u32 slot)
{
	struct guard_counts counts;

	monitor_guard_counts(&guards->guard, slot, &counts);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (counts.used[kind] || counts.floating[kind])
			return true;
	return false;
}

static bool slot_was_used(const struct guards *guards, __u32 slot)
{
	struct guard_counts counts;

	monitor_guard_counts(&guards->guard, slot, &counts);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (counts.refused[kind] || counts.overrun[kind])
			return true;
	return counts.killed;
}

/* One that nobody has and that holds nothing; if possible, without another's past. 0: none. */
static __u32 slot_new(const struct guards *guards, const bool taken[GUARD_TENANTS])
{
	__u32 second = 0;

	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++) {
		if (taken[slot] || guards_slot_holds(guards, slot))
			continue;
		if (!slot_was_used(guards, slot))
			return slot;
		if (!second)
			second = slot;
	}
	return second;
}

/* The lines of the policy for the kernel, in their order, but for the slots. */
struct rules {
	unsigned count;
	struct guard_rule rule[GUARD_RULES];
	struct guards_tenant *tenant[GUARD_RULES];
};

/* The same for the same policy. */
static __u32 tenant_number(const struct policy *policy, const struct policy_tenant *tenant)
{
	__u32 number = 1;

	for (const struct policy_tenant *at = policy->tenants; at && at != tenant; at = at->next)
		number++;
	return number;
}

static void rules_compile(struct collector *collector, struct rules *ret_rules)
{
	const struct policy *policy = collector->effective;
	unsigned count = 0;

	for (const struct policy_rule *said = policy->rules; said; said = said->next) {
		struct guards_tenant *tenant =
			guards_tenant_find(&collector->guards, said->tenant->name);
		int result = count == GUARD_RULES ? -ENOSPC : 0;

		if (!tenant || !guards_has_cgroup_only(said))
			continue;
		if (result == 0)
			result = monitor_guard_rule(&ret_rules->rule[count], said->cgroup);
		if (result < 0) {
			tenant->late = result;
			continue;
		}
		ret_rules->rule[count].tenant = tenant_number(policy, said->tenant);
		ret_rules->tenant[count++] = tenant;
	}
	ret_rules->count = count;
}

static bool rule_is_same_pattern(const struct guard_rule *a, const struct guard_rule *b)
{
	return a->length == b->length && a->first == b->first &&
	       !memcmp(a->token, b->token, sizeof(a->token)) &&
	       !memcmp(a->set, b->set, sizeof(a->set));
}

/* After an earlier collector: tenants that it knew by the same name. */
static void slots_recall_names(struct guards *guards)
{
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		for (__u32 slot = 1; slot < GUARD_TENANTS && tenant->on && !tenant->slot; slot++)
			if (monitor_guard_is_named(&guards->guard, slot, tenant->name))
				tenant->slot = slot;
}

/* A tenant that has another name now, and no cgroup at this moment, is found by its rules. */
static void slots_recall_rules(struct guards *guards, const struct rules *rules)
{
	unsigned count;
	const struct guard_rule *kept = monitor_guard_rules(&guards->guard, &count);

	for (unsigned i = 0; i < rules->count; i++)
		for (unsigned j = 0; j < count && !rules->tenant[i]->slot; j++)
			if (kept[j].slot && kept[j].slot < GUARD_TENANTS &&
			    rule_is_same_pattern(&rules->rule[i], &kept[j]) &&
			    !guards_tenant_of_slot(guards, kept[j].slot))
				rules->tenant[i]->slot = kept[j].slot;
}

/* After the slots are known. */
static void guard_rules_write(struct guards *guards, struct rules *rules)
{
	struct stat root;
	unsigned count;
	const struct guard_rule *kept = monitor_guard_rules(&guards->guard, &count);

	for (unsigned i = 0; i < rules->count; i++)
		rules->rule[i].slot = rules->tenant[i]->slot;
	if (!stat(guards_hierarchy(), &root) && guards->guard.head->root != root.st_ino) {
		guards->guard.head->root = root.st_ino;
		guards->changed = true;
	}
	if (count == rules->count && !memcmp(rules->rule, kept, count * sizeof(*kept)))
		return;
	monitor_guard_rules_set(&guards->guard, rules->rule, rules->count);
	guards->changed = true;
}

/* A tenant keeps its slot; one that has another name now is found by what its cgroups have. */
static void slots_assign(struct guards *guards, const struct rules *rules)
{
	bool taken[GUARD_TENANTS] = { false };

	slots_recall_names(guards);
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		taken[cgroup->slot] = true;
		if (cgroup->owner && !cgroup->owner->slot && cgroup->slot &&
		    !guards_tenant_of_slot(guards, cgroup->slot))
			cgroup->owner->slot = cgroup->slot;
	}
	slots_recall_rules(guards, rules);
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		taken[tenant->slot] = true;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next) {
		if (tenant->slot || !tenant->on || !tenant->rules)
			continue;
		tenant->slot = slot_new(guards, taken);
		taken[tenant->slot] = true;
		if (!tenant->slot)
			tenant->error = -ENOSPC;
	}
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		if (tenant->slot &&
		    !monitor_guard_is_named(&guards->guard, tenant->slot, tenant->name))
			monitor_guard_name_set(&guards->guard, tenant->slot, tenant->name);
}

static void guard_limits_write(struct collector *collector)
{
	const struct guards_tenant *of_slot[GUARD_TENANTS] = { NULL };
	struct guards *guards = &collector->guards;
	__u64 guarded = guards->guard.head->guarded;

	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		of_slot[tenant->slot] = tenant;
	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++) {
		const struct guards_tenant *tenant = of_slot[slot];

		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			__u64 limit = UNLIMITED;

			if (tenant && tenant->enforced && guarded >> kind & 1)
				limit = tenant->scope->limit[kind];
			monitor_guard_limit(&guards->guard, slot, kind, limit);
		}
		monitor_guard_host_limited(&guards->guard, slot, tenant && tenant->enforced);
	}
	guards_devices_write(collector, of_slot);
}

/* One that is not its owner's any more must not stay under the limits of who had it. Groups of
 * which the rules say as much have entries, too, while half of the table is free for others. */
static void cgroups_write(struct guards *guards)
{
	unsigned entries = 0;

	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		entries += cgroup->slot != 0;
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		__u32 slot = cgroup->owner ? cgroup->owner->slot : 0;
		const struct guards_tenant *keeper;

		if (slot == cgroup->slot || (slot && !cgroup->slot && !guards_needs_entry(cgroup) &&
					     entries >= GUARD_CGROUPS / 2))
			continue;
		entries += slot && !cgroup->slot;
		keeper = slot ? NULL : guards_tenant_of_slot(guards, cgroup->slot);
		if (slot || (keeper && keeper->on))
			guards_slot_set(guards, cgroup, slot);
	}
	if (guards->changed)
		monitor_guard_cgroups_changed(&guards->guard);
	guards->changed = false;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant->since = !tenant->slot || !tenant->on ? 0 :
				tenant->since		     ? tenant->since :
							       guards->guard.head->epoch;
}

void guards_write(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	struct guard_head *head = guards->guard.head;
	static struct rules rules;
	__u32 wanted = GUARD_IOCTL | GUARD_COMPAT;
	bool any = false;

	rules_compile(collector, &rules);
	slots_assign(guards, &rules);
	fairness_follow_guard(collector);
	guard_limits_write(collector);
	guard_rules_write(guards, &rules);
	cgroups_write(guards);
	if (policy_guard_writes(collector->effective))
		wanted |= GUARD_WRITE;
	/* Who switches off may switch on again, and what is made meanwhile is counted. */
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		any |= tenant->on || tenant->slot;
	if (any && head->wanted != wanted)
		__atomic_store_n(&head->wanted, wanted, __ATOMIC_SEQ_CST);
}
