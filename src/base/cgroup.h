/* SPDX-License-Identifier: MIT */
/* Cgroups of the unified hierarchy: where it is mounted, and a cgroup by its number. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_MOUNT "/sys/fs/cgroup"
#define CGROUP_MOUNT_HYBRID CGROUP_MOUNT "/unified" /* beside hierarchies of version 1 */

/* The mount point of the unified hierarchy. */
const char *cgroup_mount(void);

/* Opens the directory of the cgroup with that number (its inode); -errno, -ESTALE if it was
 * removed. Needs CAP_DAC_READ_SEARCH. */
int cgroup_open(uint64_t number);

/* The path of an open cgroup below the mount point, "/" for the root; false if it is elsewhere. */
bool cgroup_path(int directory, char ret_path[PATH_MAX]);

/* The number of a process's cgroup; 0 if it cannot be told, or is outside of our namespace. */
uint64_t cgroup_of_process(pid_t pid);

#endif
