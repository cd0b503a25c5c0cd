/* SPDX-License-Identifier: MIT */
/* Sets rdma.max of the cgroups of guarded tenants: the weaker limit below the guard. */
#include "collector/guard_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "collector/rdmacg.h"

static struct rdmacg_limit tenant_rdmacg_limit(const struct guards_tenant *tenant)
{
	return tenant && tenant->enforced ? rdmacg_limit_of(tenant->scope->limit) :
					    rdmacg_unlimited;
}

/* Whether a tenant needs no rdma.max. */
static bool tenant_rdmacg_is_idle(const struct collector *collector,
				  const struct guards_tenant *tenant)
{
	struct rdmacg_limit limit = tenant_rdmacg_limit(tenant);

	return rdmacg_is_same(&limit, &rdmacg_unlimited) &&
	       !strcmp(guards_tenant_devices(collector, tenant), "*");
}

static void rdmacg_paths_file(const struct collector *collector, char ret_path[PATH_MAX])
{
	const char *slash = strrchr(collector->runtime_path, '/');

	snprintf(ret_path, PATH_MAX, "%.*s/floors",
		 slash ? (int)(slash - collector->runtime_path) : 0, collector->runtime_path);
}

static int rdmacg_paths_print(FILE *file, const void *closure)
{
	const struct guards *guards = closure;

	for (const struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		if (cgroup->has_rdmacg)
			fprintf(file, "%s\n", cgroup->path);
	return 0;
}

/* A later life must know what is ours: the paths, a line each. */
static void rdmacg_paths_keep(const struct collector *collector)
{
	char path[PATH_MAX];
	int result;

	rdmacg_paths_file(collector, path);
	result = file_replace(path, rdmacg_paths_print, &collector->guards);
	if (result < 0)
		log_write(&collector->log, LOG_WARN, "%s: %s", path, strerror(-result));
}

void guards_rdmacg_recall(struct collector *collector)
{
	char path[PATH_MAX], line[PATH_MAX];
	struct guards_cgroup *cgroup;
	struct stat status;
	FILE *file;

	rdmacg_paths_file(collector, path);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (stat(line, &status))
			continue;
		cgroup = guards_cgroup_add(&collector->guards, line, status.st_ino);
		if (cgroup)
			cgroup->has_rdmacg = true;
	}
	if (file)
		fclose(file);
}

void guards_rdmacg_write(struct collector *collector)
{
	struct guards *guards = &collector->guards;
	bool changed = false;

	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next)
		if (!cgroup->has_rdmacg && !tenant_rdmacg_is_idle(collector, cgroup->owner) &&
		    rdmacg_is_possible(cgroup->path))
			changed = cgroup->has_rdmacg = true;
	if (changed)
		rdmacg_paths_keep(collector);
	changed = false;
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		struct rdmacg_limit limit = tenant_rdmacg_limit(cgroup->owner);
		bool none = tenant_rdmacg_is_idle(collector, cgroup->owner);
		int result;

		if (!cgroup->has_rdmacg)
			continue;
		result = rdmacg_write(cgroup->path, &limit,
				      guards_tenant_devices(collector, cgroup->owner));
		cgroup->rdmacg_in_force = result == 0 && !none;
		if (none && (result == 0 || result == -ENODEV || result == -ENOENT)) {
			cgroup->has_rdmacg = false;
			changed = true;
		}
	}
	if (changed)
		rdmacg_paths_keep(collector);
}

void guards_rdmacg_follow(struct collector *collector)
{
	/* Tenants may have gone since the last look. */
	for (struct guards_tenant *tenant = collector->guards.tenants; tenant; tenant = tenant->next) {
		tenant->scope = limits_of_tenant(collector, tenant->name, &tenant->mode);
		tenant->enforced = tenant->enforced && tenant->scope;
	}
	guards_rdmacg_write(collector);
}
