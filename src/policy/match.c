/* SPDX-License-Identifier: MIT */
/* Matching: which rule of a policy a process meets first. */
#include <fnmatch.h>

#include "policy/policy.h"

static bool ids_have(const struct policy_ids *ids, uint32_t id)
{
	for (unsigned i = 0; i < ids->count; i++)
		if (ids->range[i].first <= id && id <= ids->range[i].last)
			return true;
	return ids->count == 0;
}

static bool groups_match(const struct policy_ids *ids, const struct policy_subject *subject)
{
	bool match = ids_have(ids, subject->gid);

	for (unsigned i = 0; i < subject->groups && !match; i++)
		match = ids_have(ids, subject->group[i]);
	return match;
}

/* A path is compared as it stands: systemd's names have backslashes in them. */
static bool glob_matches(const char *glob, const char *text)
{
	return !glob[0] || fnmatch(glob, text, FNM_NOESCAPE) == 0;
}

/* Who has no label meets no glob of labels, not even "*". */
static bool label_matches(const char *glob, const char *label)
{
	return !glob[0] || (label[0] && glob_matches(glob, label));
}

const struct policy_rule *policy_match(const struct policy *policy,
				       const struct policy_subject *subject)
{
	const char *cgroup = subject->cgroup ? subject->cgroup : "";
	char container[2 * POLICY_NAME], job[POLICY_NAME];

	policy_labels(subject->rooted ? subject->rooted : cgroup, container, job);
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		if (ids_have(&rule->uid, subject->uid) && groups_match(&rule->gid, subject) &&
		    glob_matches(rule->cgroup, cgroup) &&
		    label_matches(rule->container, container) && label_matches(rule->job, job))
			return rule;
	return NULL;
}
