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

#include "monitor/guard/guard_maps.h"

#define CGROUPS "/sys/fs/cgroup"

enum { CGROUP_HANDLE = 0xfe }; /* FILEID_KERNFS: the handle of a cgroup is its number */

/* Opens a cgroup by its number; -errno if it does not exist any more. */
static int tenancy_cgroup_open(__u64 number)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(number)];
	} given = { .handle = { .handle_bytes = sizeof(number), .handle_type = CGROUP_HANDLE } };
	int mount_point = open(CGROUPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (mount_point < 0)
		return -errno;
	memcpy(given.handle.f_handle, &number, sizeof(number));
	fd = open_by_handle_at(mount_point, &given.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(mount_point);
	return fd;
}

/* The path of an open cgroup below the cgroup that rules begin in; "" if it is not known. */
static void tenancy_cgroup_path(const struct tenancy *tenancy, int fd, char ret_path[PATH_MAX])
{
	char link[64], path[PATH_MAX];
	struct stat root;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	ret_path[0] = '\0';
	if (!stat(CGROUPS, &root) && root.st_ino == tenancy->head->root &&
	    !strncmp(path, CGROUPS "/", sizeof(CGROUPS)))
		strcpy(ret_path, path + sizeof(CGROUPS) - 1);
}

/* The nearest cgroup upwards that has a tenant decides. */
int tenancy_of_cgroup(const struct tenancy *tenancy, __u64 cgroup)
{
	__u32 rules = tenancy->head->rules, slot = 0;
	const struct guard_rule *rule =
		tenancy->rules + (rules & GUARD_RULES_HALF ? GUARD_RULES : 0);
	int fd = tenancy_cgroup_open(cgroup), parent;
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
	char path[PATH_MAX], line[PATH_MAX] = "";
	struct stat status;
	FILE *file;
	int slot;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && strncmp(line, "0::", 3) != 0)
		line[0] = '\0';
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
	if (!line[0] || snprintf(path, sizeof(path), CGROUPS "%s", line + 3) >= (int)sizeof(path) ||
	    stat(path, &status))
		return 0;
	slot = tenancy_of_cgroup(tenancy, status.st_ino);
	return slot > 0 ? (__u32)slot : 0;
}
