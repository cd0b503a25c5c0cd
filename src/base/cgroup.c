/* SPDX-License-Identifier: MIT */
/* See cgroup.h. */
#include "base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/proc.h"

enum { HANDLE_TYPE = 0xfe }; /* FILEID_KERNFS: the handle is the number */

const char *cgroup_mount(void)
{
	struct statfs where;

	return !statfs(CGROUP_MOUNT, &where) && where.f_type == CGROUP2_SUPER_MAGIC ?
		       CGROUP_MOUNT :
		       CGROUP_MOUNT_HYBRID;
}

int cgroup_open(uint64_t number)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(number)];
	} given = { .handle = { .handle_bytes = sizeof(number), .handle_type = HANDLE_TYPE } };
	int mount_point = open(cgroup_mount(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (mount_point < 0)
		return -errno;
	memcpy(given.handle.f_handle, &number, sizeof(number));
	fd = open_by_handle_at(mount_point, &given.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(mount_point);
	return fd;
}

bool cgroup_path(int directory, char ret_path[PATH_MAX])
{
	const char *mount = cgroup_mount();
	size_t prefix = strlen(mount);
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	if (strncmp(path, mount, prefix) != 0 || (path[prefix] && path[prefix] != '/'))
		return false;
	strcpy(ret_path, path[prefix] ? path + prefix : "/");
	return true;
}

uint64_t cgroup_of_process(pid_t pid)
{
	char text[8192], path[sizeof(text) + 32], *line;
	struct statfs where;
	struct stat group;

	if (proc_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return 0;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	line = line ? strchr(line, '/') : NULL;
	if (!line || !strncmp(line, "/..", 3))
		return 0;
	*strchrnul(line, '\n') = '\0';
	snprintf(path, sizeof(path), "%s%s", cgroup_mount(), line);
	return !statfs(path, &where) && where.f_type == CGROUP2_SUPER_MAGIC && !stat(path, &group) ?
		       group.st_ino :
		       0;
}
