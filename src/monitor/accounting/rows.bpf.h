/* SPDX-License-Identifier: MIT */
/*
 * Rows: who makes an object, the row that counts it, and when a row is free again. Knows nothing of
 * what objects are.
 */
#ifndef MONITOR_ACCOUNTING_ROWS_BPF_H
#define MONITOR_ACCOUNTING_ROWS_BPF_H

#include "monitor/accounting/state.bpf.h"

enum { ROWS_OF_PROCESS = 32 }; /* devices times cgroups */

/* Who makes an object, and where. */
struct maker {
	struct row_key key;
	__u64 cgroup;
	const struct ib_device *device; /* may be NULL */
	__u32 device_index;
	const struct task_struct *leader;
};

/*
 * The same is found out in two ways. Programs on fentry follow the kernel's pointers as if
 * they were their own, which costs an instruction each; those on kprobes, and those that were
 * given an address only, must have each word copied, which costs a hundred.
 */

static __always_inline void maker_current(struct maker *maker, const struct task_struct *leader,
					  __u64 start_ns, const struct ib_device *device,
					  __u32 device_index)
{
	*maker = (struct maker){
		.key = { .pid = bpf_get_current_pid_tgid() >> 32, .start_ns = start_ns },
		.cgroup = bpf_get_current_cgroup_id(),
		.device = device,
		.device_index = device ? device_index : MONITOR_NO_DEVICE,
		.leader = leader,
	};
}

static __always_inline void maker_direct(struct maker *maker, struct ib_device *device)
{
	struct task_struct *leader = bpf_get_current_task_btf()->group_leader;

	maker_current(maker, leader, leader->start_boottime, device, device ? device->index : 0);
}

static __always_inline void maker_copied(struct maker *maker, const struct ib_device *device)
{
	const struct task_struct *self = (const struct task_struct *)bpf_get_current_task();
	const struct task_struct *leader = BPF_CORE_READ(self, group_leader);

	maker_current(maker, leader, BPF_CORE_READ(leader, start_boottime), device,
		      BPF_CORE_READ(device, index));
}

/* Not the current process, but the one whose leader this is. */
static __always_inline void maker_other(struct maker *maker, const struct task_struct *leader,
					const struct ib_device *device)
{
	*maker = (struct maker){
		.key = { .pid = BPF_CORE_READ(leader, tgid),
			 .start_ns = BPF_CORE_READ(leader, start_boottime) },
		.cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id),
		.device = device,
		.device_index = device ? BPF_CORE_READ(device, index) : MONITOR_NO_DEVICE,
		.leader = leader,
	};
}

/* A vacant row, filled and not yet known to others; 0 when there is none. */
static __always_inline __u32 row_take(const struct maker *maker)
{
	/* Named apart: a chain of accesses that began with our own structure would be taken for
	 * one of the kernel's. */
	const struct task_struct *leader = maker->leader;
	const struct ib_device *device = maker->device;
	struct monitor_row *row;
	__u32 number = 0;

	if (bpf_map_pop_elem(&vacant, &number))
		return 0;
	row = row_at(number);
	if (!row)
		return 0;
	row->start_ns = maker->key.start_ns;
	row->cgroup = maker->cgroup;
	row->live = 0;
	row->pid = maker->key.pid;
	row->nth = maker->key.nth;
	row->exited = 0;
	row->uid = BPF_CORE_READ(leader, cred, uid.val);
	row->device = maker->device_index;
	__builtin_memset(row->device_name, 0, sizeof(row->device_name));
	if (device)
		bpf_core_read_str(row->device_name, sizeof(row->device_name), &device->name);
	bpf_core_read_str(row->command, sizeof(row->command), &leader->comm);
	__builtin_memset(row->made, 0, sizeof(row->made));
	__builtin_memset(row->gone, 0, sizeof(row->gone));
	/* Last, and a full barrier: who sees it odd sees the rest. */
	ADD(row->generation, 1);
	return number;
}

static __always_inline void row_vacate(struct monitor_row *row, __u32 number)
{
	ADD(row->generation, 1);
	bpf_map_push_elem(&vacant, &number, BPF_ANY);
}

/* The row for a maker; the first one, of nobody, when there is no other left. */
static __always_inline __u32 row_for(struct maker *maker)
{
	for (__u32 nth = 0; nth < ROWS_OF_PROCESS; nth++) {
		struct monitor_row *row;
		__u32 *found, number;

		maker->key.nth = nth;
		found = bpf_map_lookup_elem(&owners, &maker->key);
		if (!found) {
			number = row_take(maker);
			if (!number)
				break;
			/* Another thread of the process may be as far: one of us is too late. */
			if (bpf_map_update_elem(&owners, &maker->key, &number, BPF_NOEXIST)) {
				row = row_at(number);
				if (row)
					row_vacate(row, number);
				found = bpf_map_lookup_elem(&owners, &maker->key);
				if (!found)
					break;
			}
		}
		if (found)
			number = *found;
		row = row_at(number);
		if (row && row->device == maker->device_index && row->cgroup == maker->cgroup)
			return number;
	}
	HEAD_ADD(lost_rows, 1);
	return 0;
}

/* Once its process has ended nobody adds to a row: it may go with its last object. */
static __always_inline void row_may_go(struct monitor_row *row, __u32 number)
{
	struct row_key key = { row->pid, row->nth, row->start_ns };

	if (number && *(volatile __u32 *)&row->exited && *(volatile __s64 *)&row->live == 0 &&
	    bpf_map_delete_elem(&owners, &key) == 0)
		row_vacate(row, number);
}

#endif
