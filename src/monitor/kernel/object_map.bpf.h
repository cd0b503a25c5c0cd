/* SPDX-License-Identifier: MIT */
/*
 * The map of the kernel's objects by address. The accounting writes it, the guard looks for objects
 * in it. The loader sets its size and flags.
 */
#ifndef MONITOR_KERNEL_OBJECT_MAP_BPF_H
#define MONITOR_KERNEL_OBJECT_MAP_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "monitor/reader/rows.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct monitor_object);
} objects SEC(".maps");

#endif
