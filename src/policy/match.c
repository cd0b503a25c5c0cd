/* SPDX-License-Identifier: MIT */
/*
 * Matching: which rule of a policy a process meets first, and for each row of
 * conditions.def whether a process meets the condition.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "policy/conditions.h"
#include "policy/pattern.h"
#include "policy/policy.h"

static bool ids_have(const struct policy_ids *ids, uint32_t id)
{
	for (unsigned i = 0; i < ids->count; i++)
		if (ids->range[i].first <= id && id <= ids->range[i].last)
			return true;
	return false;
}

/* A path is compared as it stands: systemd's names have backslashes in them. */
static bool pattern_fits(const char *pattern, const char *text)
{
	return fnmatch(pattern, text, FNM_NOESCAPE) == 0;
}

/* A process without a label meets no pattern of labels, not even "*". */
static bool pattern_fits_label(const char *pattern, const char *label)
{
	return label[0] && pattern_fits(pattern, label);
}

/* ---- the conditions */

bool policy_meets_uid(const void *field, const struct policy_facts *facts)
{
	return ids_have(field, facts->subject->uid);
}

bool policy_meets_gid(const void *field, const struct policy_facts *facts)
{
	const struct policy_subject *subject = facts->subject;
	bool met = ids_have(field, subject->gid);

	for (unsigned i = 0; i < subject->groups && !met; i++)
		met = ids_have(field, subject->group[i]);
	return met;
}

bool policy_meets_cgroup(const void *field, const struct policy_facts *facts)
{
	return pattern_fits(field, facts->cgroup);
}

bool policy_meets_container(const void *field, const struct policy_facts *facts)
{
	return pattern_fits_label(field, facts->container);
}

bool policy_meets_job(const void *field, const struct policy_facts *facts)
{
	return pattern_fits_label(field, facts->job);
}

bool policy_meets_namespace(const void *field, const struct policy_facts *facts)
{
	return pattern_fits_label(field, facts->namespace);
}

bool policy_meets_pod(const void *field, const struct policy_facts *facts)
{
	return pattern_fits_label(field, facts->pod);
}

/* ---- rules */

static bool rule_is_met(const struct policy_rule *rule, const struct policy_facts *facts)
{
	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		const void *field = policy_condition_get(&policy_conditions[i], rule);

		if (field && !policy_conditions[i].is_met(field, facts))
			return false;
	}
	return true;
}

static struct policy_facts subject_facts(const struct policy_subject *subject)
{
	struct policy_facts facts = { .subject = subject,
				      .cgroup = subject->cgroup ? subject->cgroup : "" };

	policy_labels(subject->rooted ? subject->rooted : facts.cgroup, facts.container, facts.job);
	if (subject->container)
		snprintf(facts.container, sizeof(facts.container), "%s", subject->container);
	if (subject->job)
		snprintf(facts.job, sizeof(facts.job), "%s", subject->job);
	if (subject->pod) {
		snprintf(facts.pod, sizeof(facts.pod), "%s", subject->pod);
		snprintf(facts.namespace, sizeof(facts.namespace), "%.*s",
			 (int)strcspn(facts.pod, "/"), facts.pod);
	}
	if (subject->namespace)
		snprintf(facts.namespace, sizeof(facts.namespace), "%s", subject->namespace);
	return facts;
}

static const struct policy_rule *rule_met(const struct policy *policy,
					  const struct policy_facts *facts)
{
	const struct policy_rule *rule = policy->rules;

	while (rule && !rule_is_met(rule, facts))
		rule = rule->next;
	return rule;
}

const struct policy_rule *policy_match(const struct policy *policy,
				       const struct policy_subject *subject)
{
	const struct policy_facts facts = subject_facts(subject);

	return rule_met(policy, &facts);
}

/* Where no rule is met, the tenant has the name of [default]. */
static void rule_tenant(const struct policy *policy, const struct policy_rule *rule,
			const struct policy_facts *facts, char ret_tenant[NAME_SIZE])
{
	if (rule && policy_name_is_pattern(rule->tenant->name))
		policy_pattern_expand(rule->tenant->name, facts, ret_tenant);
	else
		snprintf(ret_tenant, NAME_SIZE, "%s",
			 rule ? rule->tenant->name : policy->fallback.name);
}

const struct policy_rule *policy_match_tenant(const struct policy *policy,
					      const struct policy_subject *subject,
					      char ret_tenant[NAME_SIZE])
{
	const struct policy_facts facts = subject_facts(subject);
	const struct policy_rule *rule = rule_met(policy, &facts);

	rule_tenant(policy, rule, &facts, ret_tenant);
	return rule;
}

void policy_place(const struct policy *policy, const struct policy_subject *subject,
		  struct placement *ret_placement)
{
	const struct policy_facts facts = subject_facts(subject);
	const struct policy_rule *rule = rule_met(policy, &facts);
	const struct policy_tenant *tenant;
	struct placement placement = { .mode = 0 };

	rule_tenant(policy, rule, &facts, placement.tenant);
	tenant = policy_tenant_find(policy, placement.tenant);
	if (rule && policy_name_is_pattern(rule->tenant->name))
		snprintf(placement.pattern, sizeof(placement.pattern), "%s", rule->tenant->name);
	if (!tenant && rule) /* the pattern's values are those of a tenant that is not made yet */
		tenant = rule->tenant;
	placement.mode = policy_tenant_mode(policy, tenant);
	placement.guard = policy_tenant_guard(policy, tenant);
	snprintf(placement.container, sizeof(placement.container), "%s", facts.container);
	snprintf(placement.job, sizeof(placement.job), "%s", facts.job);
	snprintf(placement.pod, sizeof(placement.pod), "%s", facts.pod);
	if (rule) {
		snprintf(placement.source, sizeof(placement.source), "%s", rule->source);
		snprintf(placement.text, sizeof(placement.text), "%s", rule->text);
	}
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		placement.limit[kind] = policy_tenant_limit(policy, tenant, false, NULL, kind);
		placement.process_limit[kind] =
			policy_tenant_limit(policy, tenant, true, NULL, kind);
	}
	*ret_placement = placement;
}

bool policy_rule_in_kernel(const struct policy_rule *rule)
{
	bool any = false;

	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		if (!policy_condition_get(&policy_conditions[i], rule))
			continue;
		if (!policy_conditions[i].in_kernel)
			return false;
		any = true;
	}
	return any;
}
