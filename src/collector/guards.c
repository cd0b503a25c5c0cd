/* SPDX-License-Identifier: MIT */
/* The guard of all tenants, kept as the policy wants it; see guards.h. */
#include "collector/guards.h"

#include <errno.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/security_modules.h"
#include "collector/guard_parts.h"
#include "monitor/reader/reader.h"

/* For tests: other places than the kernel's. */
#define CGROUPS_VARIABLE "RDMA_COLLECTOR_CGROUPS"
#define LSM_VARIABLE "RDMA_COLLECTOR_LSM"

#define LSM SECURITY_MODULES_MOUNT "/" SECURITY_MODULES_NAME

/* What is shown is as old as this at most. */
#define FRESH_NS 100000000u

/* But not looked at again before so many times as long as the last look took: a user who can make
 * cgroups decides how many there are. The kernel knows a new one at once, by the rules. */
#define REST 10

static const char *guards_path(const char *variable, const char *usual)
{
	const char *named = getenv(variable);

	return named && named[0] ? named : usual;
}

const char *guards_hierarchy(void)
{
	return guards_path(CGROUPS_VARIABLE, cgroup_mount());
}

/* ---- tenants, as a list */

struct guards_tenant *guards_tenant_find(const struct guards *guards, const char *name)
{
	struct guards_tenant *tenant = guards->tenants;

	while (tenant && strcmp(tenant->name, name))
		tenant = tenant->next;
	return tenant;
}

struct guards_tenant *guards_tenant_of_slot(const struct guards *guards, __u32 slot)
{
	struct guards_tenant *tenant = guards->tenants;

	while (tenant && tenant->slot != slot)
		tenant = tenant->next;
	return tenant;
}

struct guards_tenant *guards_tenant_add(struct guards *guards, const char *name)
{
	struct guards_tenant **end = &guards->tenants;

	while (*end && strcmp((*end)->name, name))
		end = &(*end)->next;
	if (!*end && (*end = calloc(1, sizeof(**end))))
		snprintf((*end)->name, sizeof((*end)->name), "%s", name);
	return *end;
}

/* ---- the guard */

/* Why a monitor may have no guard; "" if there is nothing to say. */
static void guards_lsm_explain(char *ret_text, size_t size)
{
	char modules[512], boot[SECURITY_MODULES_BOOT];

	*ret_text = '\0';
	if (file_read_small(guards_path(LSM_VARIABLE, LSM), modules, sizeof(modules)) > 0 &&
	    !security_modules_have_bpf(modules, boot))
		snprintf(ret_text, size, ": BPF LSM is not active in this kernel: boot it with %s",
			 boot);
}

/* A better sentence than that of the maps, where there is one. */
static void guards_absence_explain(const char *directory, int result, char problem[PROBLEM_SIZE])
{
	char head[PATH_MAX + 8], guard[PATH_MAX + 16], lsm[SECURITY_MODULES_BOOT + 64];

	snprintf(head, sizeof(head), "%s/head", directory);
	snprintf(guard, sizeof(guard), "%s/guard_head", directory);
	if (result == -EPERM || result == -EACCES) {
		problem_set(result, problem,
			    "%.100s: only a collector that runs as root can use the guard", directory);
	} else if (result != -ENOENT || !access(guard, F_OK)) {
		return;
	} else if (access(head, F_OK)) {
		problem_set(result, problem, "%.100s: no rdma_monitor is loaded", directory);
	} else {
		guards_lsm_explain(lsm, sizeof(lsm));
		problem_set(result, problem, "rdma_monitor has loaded no guard%s", lsm);
	}
}

static int guards_cgroup_compare(const void *left, const void *right)
{
	const struct guard_cgroup *a = left, *b = right;

	return (a->cgroup > b->cgroup) - (a->cgroup < b->cgroup);
}

/* Finds the paths of cgroups that have a slot from an earlier life, by one walk over all. What
 * is not found does not exist any more. */
static void guards_cgroups_recall(struct guards *guards)
{
	char *const roots[] = { (char *)guards_hierarchy(), NULL };
	struct guard_cgroup *kept = NULL, *found;
	int count = monitor_guard_cgroups(&guards->guard, &kept);
	FTS *tree = count > 0 ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	struct guards_cgroup *cgroup;
	bool walked = false; /* there is a tree, and it can be seen */
	FTSENT *entry;

	if (count > 0)
		qsort(kept, (size_t)count, sizeof(*kept), guards_cgroup_compare);
	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_D)
			continue;
		walked = true;
		found = bsearch(&(struct guard_cgroup){ .cgroup = entry->fts_statp->st_ino }, kept,
				(size_t)count, sizeof(*kept), guards_cgroup_compare);
		cgroup = found ? guards_cgroup_add(guards, entry->fts_path, found->cgroup) : NULL;
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
static void guards_forget(struct guards *guards)
{
	if (guards->guard.head)
		monitor_guard_close(&guards->guard);
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		cgroup->slot = 0;
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		tenant->slot = tenant->since = 0;
}

/* Each load is another one. That there is none is told of those who want one. */
static void guards_find(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	const char *directory = monitor_directory();
	char problem[PROBLEM_SIZE] = "";
	int result;

	if (guards->guard.head && !strcmp(guards->directory, directory) &&
	    monitor_guard_is_current(&guards->guard, directory))
		return;
	guards_forget(guards);
	snprintf(guards->directory, sizeof(guards->directory), "%s", directory);
	result = monitor_guard_open(&guards->guard, directory, problem);
	if (result == 0) {
		/* Events begin anew with each collector; of a guard that comes later, all is new. */
		guards->seen = guards->looked ? 0 : guards->guard.head->logged;
		log_write(&collector->log, LOG_INFO, "%s: the guard is loaded", directory);
		guards_cgroups_recall(guards);
		/* An earlier collector may have been killed before it said that they changed. */
		guards->changed = true;
	} else {
		guards_absence_explain(directory, result, problem);
	}
	guards->looked = true;
	memcpy(guards->problem, problem, sizeof(problem));
}

/* ---- the whole */

/* Those that are off and of whom nothing is left. */
static void guards_tenants_sift(struct guards *guards)
{
	struct guards_tenant **at = &guards->tenants, *tenant;

	while ((tenant = *at)) {
		if (tenant->on || tenant->cgroups ||
		    (tenant->slot && guards_slot_holds(guards, tenant->slot))) {
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

	uint64_t begun_ns = clock_now_ns();

	if (!guards->looked)
		guards_rdmacg_recall(collector);
	guards_find(collector);
	guards_cgroups_sift(guards, false);
	if (!guards_resolve(collector))
		return;
	if (guards->guard.head)
		guards_write(collector);
	guards_rdmacg_write(collector);
	guards_conclude(collector);
	guards_tenants_sift(guards);
	guards->applied_ns = clock_now_ns();
	guards->took_ns = guards->applied_ns - begun_ns;
}

void guards_look(struct collector *collector)
{
	const struct guards *guards = &collector->guards;

	if (clock_now_ns() - guards->applied_ns > FRESH_NS + REST * guards->took_ns ||
	    (guards->guard.head && !monitor_guard_is_current(&guards->guard, guards->directory)))
		guards_apply(collector);
}

void guards_close(struct guards *guards)
{
	if (guards->guard.head)
		monitor_guard_close(&guards->guard);
	guards_cgroups_free(guards);
	while (guards->tenants) {
		struct guards_tenant *tenant = guards->tenants;

		guards->tenants = tenant->next;
		free(tenant);
	}
	*guards = (struct guards){ .looked = false };
}
