/* SPDX-License-Identifier: MIT */
/* Which cgroups are whose, by the match lines of the policy. */
#include "collector/guard_parts.h"

#include <fnmatch.h>
#include <glob.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "terms/verdict.h"

/* ---- the list of cgroups */

static int guard_cgroup_compare(const void *left, const void *right)
{
	const struct guards_cgroup *a = left, *b = right;

	return (a->inode > b->inode) - (a->inode < b->inode);
}

struct guards_cgroup *guards_cgroup_add(struct guards *guards, const char *path, __u64 inode)
{
	struct guards_cgroup *cgroup = calloc(1, sizeof(*cgroup) + strlen(path) + 1), **found;

	if (!cgroup)
		return NULL;
	strcpy(cgroup->path, path);
	cgroup->inode = inode;
	found = tsearch(cgroup, &guards->by_inode, guard_cgroup_compare);
	if (!found || *found != cgroup) {
		free(cgroup);
		return found ? *found : NULL;
	}
	cgroup->next = guards->cgroups;
	guards->cgroups = cgroup;
	return cgroup;
}

static void cgroup_remove(struct guards *guards, struct guards_cgroup **at)
{
	struct guards_cgroup *cgroup = *at;

	tdelete(cgroup, &guards->by_inode, guard_cgroup_compare);
	*at = cgroup->next;
	free(cgroup);
}

static bool cgroup_exists(const struct guards_cgroup *cgroup)
{
	struct stat status;

	return !stat(cgroup->path, &status) && status.st_ino == cgroup->inode;
}

bool guards_needs_entry(const struct guards_cgroup *cgroup)
{
	return cgroup->owner->late || strlen(cgroup->path) >= GUARD_PATH;
}

void guards_slot_set(struct guards *guards, struct guards_cgroup *cgroup, __u32 slot)
{
	int result = slot ? monitor_guard_cgroup_set(&guards->guard, cgroup->inode, slot) :
			    monitor_guard_cgroup_clear(&guards->guard, cgroup->inode);

	if (result < 0 && slot) {
		if (guards_needs_entry(cgroup))
			cgroup->owner->error = result;
		return;
	}
	cgroup->slot = slot;
	guards->changed = true;
}

void guards_cgroups_sift(struct guards *guards, bool owners_known)
{
	struct guards_cgroup **at = &guards->cgroups, *cgroup;

	while ((cgroup = *at)) {
		bool gone = !cgroup_exists(cgroup);

		if (gone && cgroup->slot)
			guards_slot_set(guards, cgroup, 0);
		if (gone || (owners_known && !cgroup->slot && !cgroup->has_rdmacg &&
			     !(cgroup->owner && cgroup->owner->on))) {
			cgroup_remove(guards, at);
		} else {
			at = &cgroup->next;
		}
	}
}

void guards_cgroups_free(struct guards *guards)
{
	while (guards->cgroups)
		cgroup_remove(guards, &guards->cgroups);
}

/* ---- which cgroups tenants are */

bool guards_has_cgroup_only(const struct policy_rule *rule)
{
	return policy_rule_in_kernel(rule);
}

/* A group and what is below it are one to the guard: how much of a pattern names the group. */
static size_t group_length(const char *pattern)
{
	size_t length = strlen(pattern);

	if (!strcmp(pattern, "*"))
		return 0;
	return length >= 2 && !strcmp(pattern + length - 2, "/*") ? length - 2 : length;
}

static bool cgroup_fits(const char *pattern, const char *path)
{
	return !strncmp(pattern, path, strcspn(pattern, "*?[")) &&
	       !fnmatch(pattern, path, FNM_NOESCAPE);
}

/* Whether those that a rule finds in a group have met another tenant's rule before. */
static bool rule_is_preceded(const struct policy *policy, const struct policy_rule *rule,
			     const char *group)
{
	bool below = group_length(rule->cgroup) < strlen(rule->cgroup);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", group, below ? "/x" : "");
	for (const struct policy_rule *first = policy->rules; first != rule; first = first->next)
		if (first->tenant != rule->tenant && guards_has_cgroup_only(first) &&
		    cgroup_fits(first->cgroup, path))
			return true;
	return false;
}

static void cgroup_claim(struct collector *collector, struct guards_tenant *tenant,
			 const struct policy_rule *rule, const char *path)
{
	struct guards_cgroup *cgroup;
	struct stat status;

	if (stat(path, &status) || !S_ISDIR(status.st_mode))
		return;
	tenant->found++;
	if (rule_is_preceded(collector->effective, rule, path + strlen(guards_hierarchy())))
		return;
	cgroup = guards_cgroup_add(&collector->guards, path, status.st_ino);
	if (cgroup && !cgroup->owner)
		cgroup->owner = tenant;
}

static void rule_resolve(struct collector *collector, const struct policy_rule *rule)
{
	const char *group = rule->cgroup;
	struct guards_tenant *tenant = guards_tenant_add(&collector->guards, rule->tenant->name);
	size_t length = group_length(group);
	char pattern[PATH_MAX];
	glob_t found;

	if (!tenant)
		return;
	if (!guards_has_cgroup_only(rule)) {
		tenant->other++;
		return;
	}
	tenant->rules++;
	snprintf(pattern, sizeof(pattern), "%s%s%.*s", guards_hierarchy(),
		 length && group[0] != '/' ? "/" : "", (int)length, group);
	/* A path is taken as it stands: systemd's names have backslashes in them. */
	if (glob(pattern, GLOB_NOSORT | GLOB_NOESCAPE | GLOB_NOMAGIC | GLOB_ONLYDIR, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		cgroup_claim(collector, tenant, rule, found.gl_pathv[i]);
	globfree(&found);
}

static void guard_tenant_judge(struct collector *collector, struct guards_tenant *tenant)
{
	const struct policy *policy = collector->effective;
	const struct policy_tenant *said = policy_tenant_find(policy, tenant->name);

	tenant->number = books_tenant_find(&collector->books, tenant->name);
	tenant->scope = limits_of_tenant(collector, tenant->name, &tenant->mode);
	tenant->on = (said || !strcmp(tenant->name, COLLECTOR_TENANT)) &&
		     !policy_name_is_pattern(tenant->name) && policy_tenant_guard(policy, said);
	tenant->enforced = tenant->on && tenant->scope &&
			   verdict_at_limit(LIMIT_OF_POLICY, tenant->mode, MODE_ENFORCE) ==
				   VERDICT_REFUSED;
	tenant->rules = tenant->found = tenant->other = 0;
	tenant->cgroups = tenant->mapped = tenant->with_rdmacg = 0;
	tenant->error = tenant->late = 0;
}

bool guards_resolve(struct collector *collector)
{
	const struct policy *policy = collector->effective;
	struct guards *guards = &collector->guards;
	bool any = guards->cgroups || guards->tenants;

	for (const struct policy_tenant *said = policy->tenants; said; said = said->next)
		if (!policy_name_is_pattern(said->name) && policy_tenant_guard(policy, said))
			any |= guards_tenant_add(guards, said->name) != NULL;
	if (policy_tenant_guard(policy, policy_tenant_find(policy, COLLECTOR_TENANT)))
		any |= guards_tenant_add(guards, COLLECTOR_TENANT) != NULL;
	if (!any)
		return false;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		guard_tenant_judge(collector, tenant);
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		cgroup->owner = NULL;
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		rule_resolve(collector, rule);
	guards_cgroups_sift(guards, true);
	return true;
}
