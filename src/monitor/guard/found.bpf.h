/* SPDX-License-Identifier: MIT */
/*
 * Charges of objects that were found: those that are older than the guard, and those that its
 * programs missed.
 */
#ifndef MONITOR_GUARD_FOUND_BPF_H
#define MONITOR_GUARD_FOUND_BPF_H

#include "monitor/guard/counts.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct monitor_object);
} objects SEC(".maps");

/* So much of what floats is this object's: that is counted already. */
static __always_inline __u64 land(__s64 *sought, __u64 amount)
{
	__u64 left = *sought > 0 ? (__u64)*sought : 0, landed = left < amount ? left : amount;

	*sought -= (__s64)landed;
	return landed;
}

/* Charges an object that was found. */
static __always_inline void put_found(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = counts_of(slot);

	barrier_var(kind); /* as in take */
	if (!counts || kind >= KIND_COUNT)
		return;
	if (!land(&counts->sought[kind], 1))
		put(slot, kind, 1);
	if (bytes)
		put(slot, KIND_mr_bytes,
		    (__s64)(bytes - land(&counts->sought[KIND_mr_bytes], bytes)));
	if (!land(&counts->sought_places, 1))
		place_add_to(slot, GUARD_OBJECTS, 1);
}

#endif
