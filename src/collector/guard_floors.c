/* SPDX-License-Identifier: MIT */
/* The floor below the guard: rdma.max of the cgroups of tenants. */
#include "collector/guard_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/floor.h"

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

void guards_floors_recall(struct collector *collector)
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
		cgroup = guards_cgroup_add(&collector->guards, line, status.st_ino);
		if (cgroup)
			cgroup->floored = true;
	}
	if (file)
		fclose(file);
}

void guards_floors_write(struct collector *collector)
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
