/* SPDX-License-Identifier: MIT */
/* Which guarded tenant a cgroup or a process belongs to, by the guard's maps; as guard.bpf.c
 * decides it for the current process. */
#ifndef MONITOR_GUARD_TENANCY_H
#define MONITOR_GUARD_TENANCY_H

#include <sys/types.h>

#include "monitor/guard/guard_rows.h"

struct tenancy {
	const struct guard_head *head;
	const struct guard_rule *rules; /* both halves */
	int tenants;			/* the map guard_tenants */
};

/* The tenant's slot; 0: none, or the process does not exist any more; or -ENOENT: the cgroup does
 * not exist any more. */
int tenancy_of_cgroup(const struct tenancy *tenancy, __u64 cgroup);
__u32 tenancy_of_process(const struct tenancy *tenancy, pid_t pid);

#endif
