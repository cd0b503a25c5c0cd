/* SPDX-License-Identifier: MIT */
/*
 * Charges of objects that were found: those that are older than the guard, and those that its
 * programs missed.
 */
#ifndef MONITOR_GUARD_FOUND_BPF_H
#define MONITOR_GUARD_FOUND_BPF_H

#include "monitor/guard/counts.bpf.h"
#include "monitor/kernel/object_map.bpf.h"

/* So much of what floats is this object's: that is counted already. */
static __always_inline __u64 found_settle(__s64 *sought, __u64 amount)
{
	__u64 left = *sought > 0 ? (__u64)*sought : 0, landed = left < amount ? left : amount;

	*sought -= (__s64)landed;
	return landed;
}

/* Charges an object that was found. */
static __always_inline void found_put(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = guard_counts_find(slot);

	barrier_var(kind); /* as in count_take */
	if (!counts || kind >= KIND_COUNT)
		return;
	if (!found_settle(&counts->sought[kind], 1))
		count_put(slot, kind, 1);
	if (bytes)
		count_put(slot, KIND_mr_bytes,
			  (__s64)(bytes - found_settle(&counts->sought[KIND_mr_bytes], bytes)));
	if (!found_settle(&counts->sought_places, 1))
		table_place_add_to(slot, GUARD_OBJECTS, 1);
}

#endif
