/* SPDX-License-Identifier: MIT */
/*
 * The guard's maps (guard_rows.h says what is in them), and errors of the kernel. For the guard's
 * programs only.
 */
#ifndef MONITOR_GUARD_STATE_BPF_H
#define MONITOR_GUARD_STATE_BPF_H

#include "monitor/guard/guard_rows.h"
#include "monitor/kernel/uobject.bpf.h"

enum {
	ENOMEM = 12,
	EACCES = 13,
	EEXIST = 17,
	EOPNOTSUPP = 95,
	EDQUOT = 122,
	SIGKILL = 9,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_head);
} guard_head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_TENANTS);
	__type(key, __u32);
	__type(value, struct guard_limits);
} guard_limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_TENANTS);
	__type(key, __u32);
	__type(value, struct guard_counts);
} guard_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_LOG);
	__type(key, __u32);
	__type(value, struct guard_entry);
} guard_log SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GUARD_CGROUPS);
	__type(key, __u64);
	__type(value, __u32);
} guard_tenants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * GUARD_RULES);
	__type(key, __u32);
	__type(value, struct guard_rule);
} guard_rules SEC(".maps");

/* Whose a cgroup is, as far as that was asked in this epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GUARD_CGROUPS);
	__type(key, __u64);
	__type(value, struct guard_tenancy);
} guard_tenancies SEC(".maps");

/* By the object's address: what it is charged. The loader sets the sizes of both. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct guard_charge);
} guard_charges SEC(".maps");

/* By thread; each is used by that alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_command);
} guard_commands SEC(".maps");

/* Files that are closed. Each of them cost a process of the tenant its life, and a tenant with
 * GUARD_SHUT of them gets no further command in, so that there is room for all tenants. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4 * GUARD_TENANTS * GUARD_SHUT);
	__type(key, __u64);
	__type(value, struct guard_closed);
} guard_closed SEC(".maps");

static __always_inline struct guard_head *guard_head_find(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&guard_head, &zero);
}

static __always_inline struct guard_counts *guard_counts_find(__u32 slot)
{
	return bpf_map_lookup_elem(&guard_counts, &slot);
}

static __always_inline int guard_is_armed(const struct guard_head *head)
{
	return head && *(volatile const __u32 *)&head->armed;
}

#endif
