/* SPDX-License-Identifier: MIT */
/* From tenants to cgroups, and what the kernel is told of them; see guards.h. */
#include "collector/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/floor.h"
#include "collector/limits.h"
#include "monitor/reader.h"

/* For tests: other places than the kernel's. */
#define CGROUPS_VARIABLE "RDMA_COLLECTOR_CGROUPS"
#define LSM_VARIABLE "RDMA_COLLECTOR_LSM"

#define CGROUPS "/sys/fs/cgroup"
#define CGROUPS_HYBRID "/sys/fs/cgroup/unified"
#define LSM "/sys/kernel/security/lsm"

/* What is shown is as old as this at most. */
#define FRESH_NS 100000000u

/* But not looked at again before so many times as long as the last look took: a user who can make
 * cgroups decides how many there are. The kernel knows a new one at once, by the rules. */
#define REST 10

static const char untended[] = "no rdma_monitor is running: start it with rdma_monitor --keep";

_Static_assert((int)WAY_IOCTL == GUARD_IOCTL && (int)WAY_COMPAT == GUARD_COMPAT &&
		       (int)WAY_WRITE == GUARD_WRITE,
	       "ways travel as they are");
_Static_assert(SIZE_UNLIMITED == GUARD_UNLIMITED && PROTO_UNLIMITED == GUARD_UNLIMITED,
	       "so do limits");

/* A tenant whose guard is on, or was and has cgroups with a slot. */
struct guards_tenant {
	struct guards_tenant *next;
	char name[POLICY_NAME];
	const struct scope *scope; /* its limits; NULL: it is not on the books */
	enum ledger_mode mode;
	bool on;
	bool enforced;	/* on, and nothing is merely watched */
	__u32 slot;	/* 0: none */
	unsigned rules; /* that have only a cgroup, */
	unsigned found; /* and how many there are by them; */
	unsigned other; /* rules that have more */
	unsigned cgroups, mapped, floors;
	int error; /* it, or a cgroup of which the rules say nothing, found no place in the kernel */
	int late;  /* a line that cannot be a rule there: its new cgroups are found by looking */
	__u64 since;  /* the epoch that it got its slot in: 0 when it has none */
	bool pending; /* rdma_monitor has still something to do for it */
	enum proto_guarantee guarantee;
	char reason[GUARDS_REASON];
};

/* A cgroup that is, or was, of such a tenant. */
struct guards_cgroup {
	struct guards_cgroup *next;
	struct guards_tenant *owner; /* by the first rule that names it; NULL: nobody's any more */
	__u64 inode;
	__u32 slot;   /* that it has in the kernel; 0: none */
	bool floored; /* rdma.max is ours */
	bool held;    /* and says what it should */
	char path[];  /* whole */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *place(const char *variable, const char *usual)
{
	const char *named = getenv(variable);

	return named && named[0] ? named : usual;
}

/* Where the unified hierarchy is. */
static const char *hierarchy(void)
{
	struct statfs where;

	if (!statfs(CGROUPS, &where) && where.f_type == CGROUP2_SUPER_MAGIC)
		return place(CGROUPS_VARIABLE, CGROUPS);
	return place(CGROUPS_VARIABLE, CGROUPS_HYBRID);
}

/* ---- tenants and cgroups, as lists */

static struct guards_tenant *tenant_find(const struct guards *guards, const char *name)
{
	struct guards_tenant *tenant = guards->tenants;

	while (tenant && strcmp(tenant->name, name))
		tenant = tenant->next;
	return tenant;
}

static struct guards_tenant *tenant_of_slot(const struct guards *guards, __u32 slot)
{
	struct guards_tenant *tenant = guards->tenants;

	while (tenant && tenant->slot != slot)
		tenant = tenant->next;
	return tenant;
}

/* NULL when there is no memory. */
static struct guards_tenant *tenant_add(struct guards *guards, const char *name)
{
	struct guards_tenant **end = &guards->tenants;

	while (*end && strcmp((*end)->name, name))
		end = &(*end)->next;
	if (!*end && (*end = calloc(1, sizeof(**end))))
		snprintf((*end)->name, sizeof((*end)->name), "%s", name);
	return *end;
}

static int compare_cgroups(const void *left, const void *right)
{
	const struct guards_cgroup *a = left, *b = right;

	return (a->inode > b->inode) - (a->inode < b->inode);
}

/* The one that is there, or a new one; NULL when there is no memory. */
static struct guards_cgroup *cgroup_add(struct guards *guards, const char *path, __u64 inode)
{
	struct guards_cgroup *cgroup = calloc(1, sizeof(*cgroup) + strlen(path) + 1), **found;

	if (!cgroup)
		return NULL;
	strcpy(cgroup->path, path);
	cgroup->inode = inode;
	found = tsearch(cgroup, &guards->by_inode, compare_cgroups);
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

	tdelete(cgroup, &guards->by_inode, compare_cgroups);
	*at = cgroup->next;
	free(cgroup);
}

static bool cgroup_exists(const struct guards_cgroup *cgroup)
{
	struct stat status;

	return !stat(cgroup->path, &status) && status.st_ino == cgroup->inode;
}

/* The kernel's rules do not say whose it is. */
static bool needs_entry(const struct guards_cgroup *cgroup)
{
	return cgroup->owner->late || strlen(cgroup->path) >= GUARD_PATH;
}

static void slot_set(struct guards *guards, struct guards_cgroup *cgroup, __u32 slot)
{
	int result = slot ? monitor_guard_cgroup_set(&guards->guard, cgroup->inode, slot) :
			    monitor_guard_cgroup_clear(&guards->guard, cgroup->inode);

	if (result < 0 && slot) {
		if (needs_entry(cgroup))
			cgroup->owner->error = result;
		return;
	}
	cgroup->slot = slot;
	guards->changed = true;
}

/* Takes out those of which nothing is to be remembered: all that are gone, and, with the
 * owners known, those that are nobody's and never were anything. */
static void cgroups_sift(struct guards *guards, bool owners_known)
{
	struct guards_cgroup **at = &guards->cgroups, *cgroup;

	while ((cgroup = *at)) {
		bool gone = !cgroup_exists(cgroup);

		if (gone && cgroup->slot)
			slot_set(guards, cgroup, 0);
		if (gone || (owners_known && !cgroup->slot && !cgroup->floored &&
			     !(cgroup->owner && cgroup->owner->on))) {
			cgroup_remove(guards, at);
		} else {
			at = &cgroup->next;
		}
	}
}

/* ---- the guard */

/* Why a monitor may have no guard; "" if there is nothing to say. */
static void lsm_explain(char *ret_text, size_t size)
{
	int fd = open(place(LSM_VARIABLE, LSM), O_RDONLY | O_CLOEXEC);
	char text[128], names[128], *name, *rest = names;
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	bool found = length <= 0;

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	strcpy(names, text);
	while ((name = strsep(&rest, ",")))
		found |= !strcmp(name, "bpf");
	*ret_text = '\0';
	if (!found)
		snprintf(ret_text, size,
			 ": this kernel runs without BPF LSM; boot it with lsm=%s,bpf", text);
}

/* A better sentence than that of the maps, where there is one. */
static void absence_explain(const char *directory, int result, char problem[GUARDS_REASON])
{
	char head[PATH_MAX + 8], guard[PATH_MAX + 16], lsm[GUARDS_REASON / 2 + 64];

	snprintf(head, sizeof(head), "%s/head", directory);
	snprintf(guard, sizeof(guard), "%s/guard_head", directory);
	if (result == -EPERM || result == -EACCES) {
		snprintf(problem, GUARDS_REASON,
			 "%.100s: only root's collector may tell the guard anything", directory);
	} else if (result != -ENOENT || !access(guard, F_OK)) {
		return;
	} else if (access(head, F_OK)) {
		snprintf(problem, GUARDS_REASON, "%.100s: no rdma_monitor is loaded", directory);
	} else {
		lsm_explain(lsm, sizeof(lsm));
		snprintf(problem, GUARDS_REASON, "rdma_monitor has no guard%s", lsm);
	}
}

static int compare_kept(const void *left, const void *right)
{
	const struct guard_cgroup *a = left, *b = right;

	return (a->cgroup > b->cgroup) - (a->cgroup < b->cgroup);
}

/* Finds the paths of cgroups that have a slot from an earlier life, by one walk over all. What
 * is not found does not exist any more. */
static void cgroups_recall(struct guards *guards)
{
	char *const roots[] = { (char *)hierarchy(), NULL };
	struct guard_cgroup *kept = NULL, *found;
	int count = monitor_guard_cgroups(&guards->guard, &kept);
	FTS *tree = count > 0 ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	struct guards_cgroup *cgroup;
	bool walked = false; /* there is a tree, and it can be seen */
	FTSENT *entry;

	if (count > 0)
		qsort(kept, (size_t)count, sizeof(*kept), compare_kept);
	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_D)
			continue;
		walked = true;
		found = bsearch(&(struct guard_cgroup){ .cgroup = entry->fts_statp->st_ino }, kept,
				(size_t)count, sizeof(*kept), compare_kept);
		cgroup = found ? cgroup_add(guards, entry->fts_path, found->cgroup) : NULL;
		if (cgroup) {
			cgroup->slot = found->slot % GUARD_TENANTS;
			found->unused = 1;
		}
	}
	if (tree)
		fts_close(tree);
	for (int i = 0; i < count && walked; i++)
		if (!kept[i].unused && !monitor_guard_cgroup_clear(&guards->guard, kept[i].cgroup))
			guards->changed = true;
	free(kept);
}

/* Slots are those of the guard that was opened. */
static void forget(struct guards *guards)
{
	if (guards->guard.head)
		monitor_guard_close(&guards->guard);
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		cgroup->slot = 0;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant->slot = tenant->since = 0;
}

/* Each load is another one. That there is none is told of those who want one. */
static void guard_find(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	const char *directory = monitor_directory();
	char problem[GUARDS_REASON] = "";
	int result;

	if (guards->guard.head && !strcmp(guards->directory, directory) &&
	    monitor_guard_is_current(&guards->guard, directory))
		return;
	forget(guards);
	snprintf(guards->directory, sizeof(guards->directory), "%s", directory);
	result = monitor_guard_open(&guards->guard, directory, problem, sizeof(problem));
	if (result == 0) {
		/* Events begin anew with each collector; of a guard that comes later, all is new. */
		guards->seen = guards->looked ? 0 : guards->guard.head->logged;
		log_write(&collector->log, LOG_INFO, "%s: there is a guard", directory);
		cgroups_recall(guards);
		/* An earlier collector may have been killed before it said that they changed. */
		guards->changed = true;
	} else {
		absence_explain(directory, result, problem);
	}
	guards->looked = true;
	memcpy(guards->problem, problem, sizeof(problem));
}

/* ---- which cgroups tenants are */

static bool has_cgroup_only(const struct policy_rule *rule)
{
	return rule->cgroup[0] && !rule->container[0] && !rule->job[0] && !rule->uid.count &&
	       !rule->gid.count;
}

/* A group and what is below it are one to the guard: how much of a pattern names the group. */
static size_t group_length(const char *pattern)
{
	size_t length = strlen(pattern);

	if (!strcmp(pattern, "*"))
		return 0;
	return length >= 2 && !strcmp(pattern + length - 2, "/*") ? length - 2 : length;
}

static bool fits(const char *pattern, const char *path)
{
	return !strncmp(pattern, path, strcspn(pattern, "*?[")) &&
	       !fnmatch(pattern, path, FNM_NOESCAPE);
}

/* Whether those that a rule finds in a group have met another tenant's rule before. */
static bool is_preceded(const struct policy *policy, const struct policy_rule *rule,
			const char *group)
{
	bool below = group_length(rule->cgroup) < strlen(rule->cgroup);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", group, below ? "/x" : "");
	for (const struct policy_rule *first = policy->rules; first != rule; first = first->next)
		if (first->tenant != rule->tenant && has_cgroup_only(first) &&
		    fits(first->cgroup, path))
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
	if (is_preceded(collector->effective, rule, path + strlen(hierarchy())))
		return;
	cgroup = cgroup_add(&collector->guards, path, status.st_ino);
	if (cgroup && !cgroup->owner)
		cgroup->owner = tenant;
}

static void rule_resolve(struct collector *collector, const struct policy_rule *rule)
{
	const char *group = rule->cgroup;
	struct guards_tenant *tenant = tenant_add(&collector->guards, rule->tenant->name);
	size_t length = group_length(group);
	char pattern[PATH_MAX];
	glob_t found;

	if (!tenant)
		return;
	if (!has_cgroup_only(rule)) {
		tenant->other++;
		return;
	}
	tenant->rules++;
	snprintf(pattern, sizeof(pattern), "%s%s%.*s", hierarchy(),
		 length && group[0] != '/' ? "/" : "", (int)length, group);
	/* A path is taken as it stands: systemd's names have backslashes in them. */
	if (glob(pattern, GLOB_NOSORT | GLOB_NOESCAPE | GLOB_NOMAGIC | GLOB_ONLYDIR, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		cgroup_claim(collector, tenant, rule, found.gl_pathv[i]);
	globfree(&found);
}

static void tenant_judge(struct collector *collector, struct guards_tenant *tenant)
{
	const struct policy *policy = collector->effective;
	const struct policy_tenant *said = policy_tenant_find(policy, tenant->name);

	tenant->scope = limits_of_tenant(collector, tenant->name, &tenant->mode);
	tenant->on = (said || !strcmp(tenant->name, COLLECTOR_TENANT)) &&
		     policy_tenant_guard(policy, said);
	tenant->enforced = tenant->on && tenant->scope && tenant->mode == MODE_ENFORCE;
	tenant->rules = tenant->found = tenant->other = 0;
	tenant->cgroups = tenant->mapped = tenant->floors = 0;
	tenant->error = tenant->late = 0;
}

/* Who is guarded, and has which cgroups. False if there is nothing to do for anybody. */
static bool tenants_resolve(struct collector *collector)
{
	const struct policy *policy = collector->effective;
	struct guards *guards = &collector->guards;
	bool any = guards->cgroups || guards->tenants;

	for (const struct policy_tenant *said = policy->tenants; said; said = said->next)
		if (policy_tenant_guard(policy, said))
			any |= tenant_add(guards, said->name) != NULL;
	if (policy_tenant_guard(policy, policy_tenant_find(policy, COLLECTOR_TENANT)))
		any |= tenant_add(guards, COLLECTOR_TENANT) != NULL;
	if (!any)
		return false;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant_judge(collector, tenant);
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		cgroup->owner = NULL;
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		rule_resolve(collector, rule);
	cgroups_sift(guards, true);
	return true;
}

/* ---- what the kernel is told */

static bool slot_holds(const struct guards *guards, __u32 slot)
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
		if (taken[slot] || slot_holds(guards, slot))
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
		struct guards_tenant *tenant = tenant_find(&collector->guards, said->tenant->name);
		int result = count == GUARD_RULES ? -ENOSPC : 0;

		if (!tenant || !has_cgroup_only(said))
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

static bool is_same_pattern(const struct guard_rule *a, const struct guard_rule *b)
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
			    is_same_pattern(&rules->rule[i], &kept[j]) &&
			    !tenant_of_slot(guards, kept[j].slot))
				rules->tenant[i]->slot = kept[j].slot;
}

/* After the slots are known. */
static void rules_write(struct guards *guards, struct rules *rules)
{
	struct stat root;
	unsigned count;
	const struct guard_rule *kept = monitor_guard_rules(&guards->guard, &count);

	for (unsigned i = 0; i < rules->count; i++)
		rules->rule[i].slot = rules->tenant[i]->slot;
	if (!stat(hierarchy(), &root) && guards->guard.head->root != root.st_ino) {
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
		    !tenant_of_slot(guards, cgroup->slot))
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

static void limits_write(struct collector *collector)
{
	const struct guards_tenant *of_slot[GUARD_TENANTS] = { NULL };
	struct guards *guards = &collector->guards;
	__u64 guarded = guards->guard.head->guarded;

	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		of_slot[tenant->slot] = tenant;
	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++) {
		const struct guards_tenant *tenant = of_slot[slot];

		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			__u64 limit = GUARD_UNLIMITED;

			if (tenant && tenant->enforced && guarded >> kind & 1)
				limit = tenant->scope->limit[kind];
			monitor_guard_limit(&guards->guard, slot, kind, limit);
		}
	}
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

		if (slot == cgroup->slot ||
		    (slot && !cgroup->slot && !needs_entry(cgroup) && entries >= GUARD_CGROUPS / 2))
			continue;
		entries += slot && !cgroup->slot;
		keeper = slot ? NULL : tenant_of_slot(guards, cgroup->slot);
		if (slot || (keeper && keeper->on))
			slot_set(guards, cgroup, slot);
	}
	if (guards->changed)
		monitor_guard_cgroups_changed(&guards->guard);
	guards->changed = false;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant->since = !tenant->slot || !tenant->on ? 0 :
				tenant->since		     ? tenant->since :
							       guards->guard.head->epoch;
}

static void kernel_tell(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	struct guard_head *head = guards->guard.head;
	static struct rules rules;
	__u32 wanted = GUARD_IOCTL | GUARD_COMPAT;
	bool any = false;

	rules_compile(collector, &rules);
	slots_assign(guards, &rules);
	limits_write(collector);
	rules_write(guards, &rules);
	cgroups_write(guards);
	if (collector->effective->guard_writes != POLICY_OFF)
		wanted |= GUARD_WRITE;
	/* Who switches off may switch on again, and what is made meanwhile is counted. */
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		any |= tenant->on || tenant->slot;
	if (any && head->wanted != wanted)
		__atomic_store_n(&head->wanted, wanted, __ATOMIC_SEQ_CST);
}

/* ---- the floor: rdma.max of the cgroups */

static struct floor floor_of(const struct guards_tenant *tenant)
{
	return tenant && tenant->enforced ? floor_below(tenant->scope->limit) : floor_none;
}

static void floors_path(const struct collector *collector, char ret_path[PATH_MAX])
{
	const char *slash = strrchr(collector->runtime_path, '/');

	snprintf(ret_path, PATH_MAX, "%.*s/floors",
		 slash ? (int)(slash - collector->runtime_path) : 0, collector->runtime_path);
}

/* A later life must know what is ours: the paths, a line each. */
static void floors_remember(const struct collector *collector)
{
	char path[PATH_MAX], temporary[PATH_MAX + 2];
	FILE *file;

	floors_path(collector, path);
	snprintf(temporary, sizeof(temporary), "%s~", path);
	file = fopen(temporary, "we");
	for (const struct guards_cgroup *cgroup = collector->guards.cgroups; file && cgroup;
	     cgroup = cgroup->next)
		if (cgroup->floored)
			fprintf(file, "%s\n", cgroup->path);
	if (!file || fclose(file) || rename(temporary, path))
		log_write(&collector->log, LOG_WARN, "%s: %s", path, strerror(errno));
}

static void floors_recall(struct collector *collector)
{
	char path[PATH_MAX], line[PATH_MAX];
	struct guards_cgroup *cgroup;
	struct stat status;
	FILE *file;

	floors_path(collector, path);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (stat(line, &status))
			continue;
		cgroup = cgroup_add(&collector->guards, line, status.st_ino);
		if (cgroup)
			cgroup->floored = true;
	}
	if (file)
		fclose(file);
}

static void floors_write(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	bool changed = false;

	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		struct floor floor = floor_of(cgroup->owner);

		if (!cgroup->floored && !floor_is_same(&floor, &floor_none) &&
		    floor_is_possible(cgroup->path))
			changed = cgroup->floored = true;
	}
	if (changed)
		floors_remember(collector);
	changed = false;
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		struct floor floor = floor_of(cgroup->owner);
		bool none = floor_is_same(&floor, &floor_none);
		int result;

		if (!cgroup->floored)
			continue;
		result = floor_write(cgroup->path, &floor);
		cgroup->held = result == 0 && !none;
		if (none && (result == 0 || result == -ENODEV || result == -ENOENT)) {
			cgroup->floored = false;
			changed = true;
		}
	}
	if (changed)
		floors_remember(collector);
}

/* ---- what comes of it */

static void tenant_count(struct guards *guards)
{
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		struct guards_tenant *owner = cgroup->owner;

		if (!owner)
			continue;
		owner->cgroups++;
		owner->mapped += owner->slot && cgroup->slot == owner->slot;
		owner->floors += cgroup->held;
	}
}

static void head_problem(const struct guard_head *head, char ret_problem[GUARDS_REASON])
{
	snprintf(ret_problem, GUARDS_REASON, "%.*s", GUARDS_REASON - 1, head->problem);
}

/* Ways into the kernel that are not looked at, as a sentence; false if there are none. */
static bool ways_lack(const struct guard_head *head, char ret_reason[GUARDS_REASON])
{
	__u32 ways = __atomic_load_n(&head->ways, __ATOMIC_RELAXED);
	__u32 wanted = __atomic_load_n(&head->wanted, __ATOMIC_RELAXED);
	char problem[GUARDS_REASON];

	if ((ways & GUARD_WRITE) && !(wanted & ~ways))
		return false;
	head_problem(head, problem);
	if (!(wanted & ~ways))
		snprintf(problem, sizeof(problem), "[host] has guard_writes = off");
	else if (!problem[0])
		snprintf(problem, sizeof(problem), "rdma_monitor has not attached that yet");
	snprintf(ret_reason, GUARDS_REASON, "%s not guarded: %.200s",
		 ways & GUARD_WRITE ? "32-bit programs are" : "write() is", problem);
	return true;
}

/* What is not as it should be for a tenant that is guarded; false: nothing. */
static bool has_exception(const struct guards *guards, const struct guards_tenant *tenant,
			  char ret_reason[GUARDS_REASON])
{
	static const char *const tables[GUARD_TABLES] = {
		[GUARD_OBJECTS] = "objects", [GUARD_RUNNING] = "threads"
	};
	const struct guard_head *head = guards->guard.head;

	if (__atomic_load_n(&head->counted, __ATOMIC_ACQUIRE) < tenant->since) {
		snprintf(ret_reason, GUARDS_REASON, "%s",
			 monitor_guard_is_tended(&guards->guard) ?
				 "rdma_monitor has not counted yet what the tenant holds already" :
				 untended);
		return true;
	}
	if (__atomic_load_n(&head->incomplete, __ATOMIC_RELAXED)) {
		snprintf(
			ret_reason, GUARDS_REASON,
			"rdma_monitor has no room to list all objects: objects that are older than "
			"the guard may be missing in its counts");
		return true;
	}
	if (tenant->late) {
		snprintf(ret_reason, GUARDS_REASON,
			 "a match line is none that the kernel can decide by (%s): new cgroups are "
			 "not guarded until the collector has seen them, within a second",
			 strerror(-tenant->late));
		return true;
	}
	for (unsigned table = 0; table < GUARD_TABLES; table++) {
		if (!tenant->slot || monitor_guard_room(&guards->guard, tenant->slot, table) > 0)
			continue;
		snprintf(ret_reason, GUARDS_REASON,
			 "its share of the guard's table of %s is full (the tenant %" PRId64
			 ", all %" PRId64 " of %" PRIu64 "): more is refused, whatever the limits",
			 tables[table], (int64_t)guards->guard.counts[tenant->slot].taken[table],
			 (int64_t)head->taken[table], (uint64_t)head->most[table]);
		return true;
	}
	return false;
}

/* What it does for a tenant; if not, or not all, why. */
static enum proto_guarantee kernel_guarantee(const struct collector *collector,
					     const struct guards_tenant *tenant,
					     char ret_reason[GUARDS_REASON])
{
	const struct guards *guards = &collector->guards;
	const struct guard_head *head = guards->guard.head;

	ret_reason[0] = '\0';
	if (!tenant->enforced)
		snprintf(ret_reason, GUARDS_REASON, "its mode is %s, and only enforce refuses",
			 policy_mode_names[tenant->mode]); /* the same numbers */
	else if (!tenant->rules)
		snprintf(ret_reason, GUARDS_REASON,
			 "it has no match line with a cgroup and nothing else");
	else if (!tenant->cgroups && tenant->found)
		snprintf(ret_reason, GUARDS_REASON,
			 "its cgroups are another tenant's by an earlier line");
	else if (!tenant->cgroups && (!head || tenant->late))
		snprintf(ret_reason, GUARDS_REASON, "none of its cgroups exists");
	else if (!head)
		snprintf(ret_reason, GUARDS_REASON, "%s", guards->problem);
	else if (tenant->error)
		snprintf(ret_reason, GUARDS_REASON, "the guard has no room for its cgroups: %s",
			 strerror(-tenant->error));
	if (ret_reason[0])
		return GUARANTEE_NONE;
	if (!__atomic_load_n(&head->armed, __ATOMIC_ACQUIRE)) {
		head_problem(head, ret_reason);
		if (!ret_reason[0])
			snprintf(ret_reason, GUARDS_REASON, "%s",
				 monitor_guard_is_tended(&guards->guard) ?
					 "rdma_monitor has not attached it yet" :
					 untended);
		return GUARANTEE_NONE;
	}
	if (has_exception(guards, tenant, ret_reason) || ways_lack(head, ret_reason))
		return GUARANTEE_PARTLY;
	if (tenant->other)
		snprintf(ret_reason, GUARDS_REASON,
			 "its cgroups only; match lines that have more than a cgroup: %u",
			 tenant->other);
	return GUARANTEE_KERNEL;
}

static void tenant_tell(const struct collector *collector, const struct guards_tenant *tenant)
{
	static const char *const words[GUARANTEES] = {
		[GUARANTEE_OFF] = "is off",
		[GUARANTEE_KERNEL] = "is on, in the kernel",
		[GUARANTEE_FLOOR] = "is on, by rdma.max only",
		[GUARANTEE_NONE] = "is on, and nothing is guarded",
		[GUARANTEE_PARTLY] = "is on, partly",
	};

	log_write(&collector->log, tenant->guarantee > GUARANTEE_KERNEL ? LOG_WARN : LOG_INFO,
		  "tenant %s: the guard %s%s%s", tenant->name, words[tenant->guarantee],
		  tenant->reason[0] ? ": " : "", tenant->reason);
}

/* What is wanted and can be had is not there yet, and there is no word of why. */
static bool is_pending(const struct guards *guards, const struct guards_tenant *tenant)
{
	const struct guard_head *head = guards->guard.head;

	if (!tenant->on || !tenant->slot || !tenant->enforced || !head ||
	    !monitor_guard_is_tended(&guards->guard))
		return false;
	if (!__atomic_load_n(&head->armed, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&head->wanted, __ATOMIC_RELAXED) &
		    ~__atomic_load_n(&head->ways, __ATOMIC_RELAXED))
		return !head->problem[0];
	return __atomic_load_n(&head->counted, __ATOMIC_ACQUIRE) < tenant->since;
}

static void tenant_conclude(struct collector *collector, struct guards_tenant *tenant)
{
	char reason[GUARDS_REASON] = "";
	enum proto_guarantee guarantee = GUARANTEE_OFF;

	tenant->pending = is_pending(&collector->guards, tenant);
	if (tenant->on)
		guarantee = kernel_guarantee(collector, tenant, reason);
	if (guarantee == GUARANTEE_NONE && tenant->floors)
		guarantee = GUARANTEE_FLOOR;
	if (guarantee == tenant->guarantee && !strcmp(reason, tenant->reason))
		return;
	tenant->guarantee = guarantee;
	memcpy(tenant->reason, reason, sizeof(reason));
	tenant_tell(collector, tenant);
}

/* Those that are off and of whom nothing is left. */
static void tenants_sift(struct guards *guards)
{
	struct guards_tenant **at = &guards->tenants, *tenant;

	while ((tenant = *at)) {
		if (tenant->on || tenant->cgroups ||
		    (tenant->slot && slot_holds(guards, tenant->slot))) {
			at = &tenant->next;
			continue;
		}
		*at = tenant->next;
		free(tenant);
	}
}

void guards_apply(struct collector *collector)
{
	struct guards *guards = &collector->guards;

	uint64_t begun_ns = now_ns();

	if (!guards->looked)
		floors_recall(collector);
	guard_find(collector);
	cgroups_sift(guards, false);
	if (!tenants_resolve(collector))
		return;
	if (guards->guard.head)
		kernel_tell(collector);
	floors_write(collector);
	tenant_count(guards);
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant_conclude(collector, tenant);
	tenants_sift(guards);
	guards->applied_ns = now_ns();
	guards->took_ns = guards->applied_ns - begun_ns;
}

void guards_look(struct collector *collector)
{
	const struct guards *guards = &collector->guards;

	if (now_ns() - guards->applied_ns > FRESH_NS + REST * guards->took_ns ||
	    (guards->guard.head && !monitor_guard_is_current(&guards->guard, guards->directory)))
		guards_apply(collector);
}

void guards_close(struct guards *guards)
{
	if (guards->guard.head)
		monitor_guard_close(&guards->guard);
	while (guards->cgroups)
		cgroup_remove(guards, &guards->cgroups);
	while (guards->tenants) {
		struct guards_tenant *tenant = guards->tenants;

		guards->tenants = tenant->next;
		free(tenant);
	}
	*guards = (struct guards){ .looked = false };
}

/* ---- what the kernel tells */

/* Registered processes number what happens to them; of others, what is remembered counts. */
static uint64_t event_number(struct collector *collector, pid_t pid)
{
	const struct proto_event *event = events_first(&collector->events);
	int member = members_of_pid(&collector->members, pid);
	uint64_t highest = 0;

	if (member >= 0)
		return ++collector->books.file->member[member].refusals;
	for (; event; event = events_next(&collector->events, event))
		if (event->pid == pid && event->number > highest)
			highest = event->number;
	return highest + 1;
}

static void entry_tell(struct collector *collector, const struct guard_entry *entry)
{
	static const struct {
		enum proto_event_type type;
		const char *text;
	} rows[] = {
		[GUARD_REFUSED] = { EVENT_REFUSED, "refused in the kernel" },
		[GUARD_OVERRUN] = { EVENT_OVERRUN,
				    "made beyond the limit, in a way that could not be refused" },
		[GUARD_KILLED] = { EVENT_KILLED,
				   "killed: it changed a command after the guard had looked at it" },
		[GUARD_CLOSED_REFUSED] = { EVENT_REFUSED,
					   "refused in the kernel: the device file is closed, since "
					   "somebody changed a command on it" },
		[GUARD_CLOSED_KILLED] = { EVENT_KILLED,
					  "killed: it used a device file on which its tenant had "
					  "changed a command" },
		[GUARD_CROWDED] = { EVENT_REFUSED,
				    "refused in the kernel: the tenant has its share of the "
				    "places in the guard's table" },
	};
	const struct guards_tenant *tenant = tenant_of_slot(&collector->guards, entry->slot);
	struct proto_event event = {
		.pid = (int32_t)entry->pid,
		.kind = entry->kind,
		.scope = SCOPE_TENANT,
		.ring = RING_KERNEL,
		.used = entry->used,
		.wanted = entry->amount,
		.limit = entry->limit,
	};

	if (entry->event >= sizeof(rows) / sizeof(rows[0]) || entry->kind >= KIND_COUNT)
		return;
	event.type = rows[entry->event].type;
	event.number = event_number(collector, event.pid);
	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 tenant && entry->slot ? tenant->name : "");
	snprintf(event.text, sizeof(event.text), "%s: %s", entry->command, rows[entry->event].text);
	collector_event(collector, &event);
}

void guards_listen(struct collector *collector)
{
	static struct log_seldom too_fast;
	struct guards *guards = &collector->guards;
	struct guard_entry entry;
	__u64 lost = 0;

	if (!guards->guard.head || !monitor_guard_is_current(&guards->guard, guards->directory))
		return;
	while (monitor_guard_log(&guards->guard, &guards->seen, &lost, &entry))
		entry_tell(collector, &entry);
	if (lost)
		log_seldom(&collector->log, &too_fast, LOG_WARN,
			   "%" PRIu64 " refusals of the guard came too fast to be told as events",
			   (uint64_t)lost);
}

/* ---- describing */

static void row_count(const struct guards *guards, __u32 slot, struct proto_guard *row)
{
	struct guard_counts counts;

	monitor_guard_counts(&guards->guard, slot, &counts);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row->used[kind] += counts.used[kind] > 0 ? (uint64_t)counts.used[kind] : 0;
		row->refused[kind] += counts.refused[kind];
		row->overrun[kind] += counts.overrun[kind];
	}
	row->killed += counts.killed;
}

static struct proto_guard row_begin(const struct guards *guards, uint32_t scope)
{
	const struct guard_head *head = guards->guard.head;
	struct proto_guard row = { .scope = scope };

	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		row.limit[kind] = PROTO_UNLIMITED;
	if (!head)
		return row;
	row.armed = __atomic_load_n(&head->armed, __ATOMIC_ACQUIRE) != 0;
	row.ways = row.armed ? __atomic_load_n(&head->ways, __ATOMIC_RELAXED) : 0;
	row.wanted = __atomic_load_n(&head->wanted, __ATOMIC_RELAXED);
	row.guarded = head->guarded & ((1ull << KIND_COUNT) - 1);
	return row;
}

void guards_describe_host(const struct collector *collector, struct proto_guard *ret_row)
{
	const struct guards *guards = &collector->guards;

	*ret_row = row_begin(guards, ROW_HOST);
	snprintf(ret_row->reason, sizeof(ret_row->reason), "%s", guards->problem);
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		ret_row->on += tenant->on;
	for (const struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		ret_row->cgroups += cgroup->slot != 0;
		ret_row->floor += cgroup->held;
	}
	if (!guards->guard.head)
		return;
	head_problem(guards->guard.head, ret_row->reason);
	if (!ret_row->reason[0] && !monitor_guard_is_tended(&guards->guard))
		snprintf(ret_row->reason, sizeof(ret_row->reason), "%s", untended);
	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++)
		row_count(guards, slot, ret_row);
}

void guards_describe_tenant(const struct collector *collector, const char *name,
			    struct proto_guard *ret_row)
{
	const struct guards *guards = &collector->guards;
	const struct guards_tenant *tenant = tenant_find(guards, name);

	*ret_row = row_begin(guards, ROW_TENANT);
	snprintf(ret_row->tenant, sizeof(ret_row->tenant), "%s", name);
	if (!tenant)
		return;
	ret_row->on = tenant->on;
	ret_row->guarantee = tenant->guarantee;
	ret_row->pending = tenant->pending;
	ret_row->cgroups = guards->guard.head ? tenant->mapped : tenant->cgroups;
	ret_row->floor = tenant->floors;
	snprintf(ret_row->reason, sizeof(ret_row->reason), "%s", tenant->reason);
	if (!tenant->slot)
		return;
	row_count(guards, tenant->slot, ret_row);
	memcpy(ret_row->limit, guards->guard.limits[tenant->slot].limit, sizeof(ret_row->limit));
}
