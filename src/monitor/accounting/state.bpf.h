/* SPDX-License-Identifier: MIT */
/*
 * The accounting's maps; rows.h says what others read in them. For the accounting's programs
 * only.
 */
#ifndef MONITOR_ACCOUNTING_STATE_BPF_H
#define MONITOR_ACCOUNTING_STATE_BPF_H

#include "monitor/kernel/object_map.bpf.h"
#include "monitor/kernel/uobject.bpf.h"

struct row_key {
	__u32 pid;
	__u32 nth;
	__u64 start_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct monitor_head);
} head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MONITOR_ROWS);
	__type(key, __u32);
	__type(value, struct monitor_row);
} rows SEC(".maps");

/* Which row is whose. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MONITOR_ROWS);
	__type(key, struct row_key);
	__type(value, __u32);
} owners SEC(".maps");

/* Rows of nobody; the loader fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, MONITOR_ROWS);
	__uint(value_size, sizeof(__u32));
} vacant SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static __always_inline struct monitor_head *head_find(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&head, &zero);
}

static __always_inline struct monitor_row *row_at(__u32 number)
{
	return bpf_map_lookup_elem(&rows, &number);
}

#define HEAD_ADD(field, amount)                                                                    \
	({                                                                                         \
		struct monitor_head *written = head_find();                                        \
		if (written)                                                                       \
			ADD(written->field, amount);                                               \
	})

#endif
