/* SPDX-License-Identifier: MIT */
/* Which tenant a cgroup or a process belongs to; see tenancy.h. */
#include "monitor/guard/tenancy.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "monitor/guard/guard_maps.h"

/* The path of an open cgroup below the cgroup that rules begin in; "" if it is not known. */
static void tenancy_cgroup_path(const struct tenancy *tenancy, int fd, char ret_path[PATH_MAX])
{
	struct stat root;

	if (stat(cgroup_mount(), &root) || root.st_ino != tenancy->head->root ||
	    !cgroup_path(fd, ret_path) || !strcmp(ret_path, "/"))
		ret_path[0] = '\0';
}

/* The nearest cgroup upwards that has a tenant decides. */
int tenancy_of_cgroup(const struct tenancy *tenancy, __u64 cgroup)
{
	__u32 rules = tenancy->head->rules, slot = 0;
	const struct guard_rule *rule =
		tenancy->rules + (rules & GUARD_RULES_HALF ? GUARD_RULES : 0);
	int fd = cgroup_open(cgroup), parent;
	char path[PATH_MAX] = "", *slash;
	struct stat status;
	__u64 last = 0;

	if (fd < 0)
		return -ENOENT;
	tenancy_cgroup_path(tenancy, fd, path);
	while (fd >= 0 && !fstat(fd, &status)) {
		__u64 inode = status.st_ino;

		if (inode == last || !bpf_map_lookup_elem(tenancy->tenants, &inode, &slot) ||
		    monitor_guard_rules_name(rule, rules & ~GUARD_RULES_HALF, path, &slot))
			break;
		last = inode;
		parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = parent;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	if (fd >= 0)
		close(fd);
	return (int)slot;
}

/* By the cgroup that the process is in now. */
__u32 tenancy_of_process(const struct tenancy *tenancy, pid_t pid)
{
	__u64 cgroup = cgroup_of_process(pid);
	int slot;

	if (!cgroup)
		return 0;
	slot = tenancy_of_cgroup(tenancy, cgroup);
	return slot > 0 ? (__u32)slot : 0;
}
