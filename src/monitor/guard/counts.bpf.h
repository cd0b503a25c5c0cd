/* SPDX-License-Identifier: MIT */
/*
 * What tenants have: amounts of each kind against their limits, places in the tables, and what
 * floats. Also the log of what was refused. Knows kinds and slots, and nothing of commands.
 */
#ifndef MONITOR_GUARD_COUNTS_BPF_H
#define MONITOR_GUARD_COUNTS_BPF_H

#include "monitor/guard/state.bpf.h"

enum { ATTEMPTS = 8 }; /* at a counter that others change as well */

/* The addresses of a process, in bytes. No region has more, and what somebody asks for beyond it is
 * refused to all: sums of such amounts would not fit into a count. */
#define AMOUNT_MOST (1ull << 47)

/* ---- places in tables */

static __always_inline void table_place_add(struct guard_head *head, struct guard_counts *counts,
					    enum guard_table table, __s64 amount)
{
	ADD(head->taken[table], amount);
	ADD(counts->taken[table], amount);
}

/* By its number. */
static __always_inline void table_place_add_to(__u32 slot, enum guard_table table, __s64 amount)
{
	struct guard_head *head = guard_head_find();
	struct guard_counts *counts = guard_counts_find(slot);

	if (head && counts)
		table_place_add(head, counts, table, amount);
}

/* How many places a tenant may have at this moment. */
static __always_inline __s64 table_place_share(const struct guard_head *head,
					       enum guard_table table)
{
	__u64 most = head->most[table];

	return (__s64)(most - most / GUARD_RESERVE) - *(volatile const __s64 *)&head->taken[table];
}

/* ---- counting */

static __always_inline void log_note_device(enum guard_event event, __u32 slot, __u32 kind,
					    __u64 amount, __u64 used, __u64 limit, __u32 device)
{
	struct guard_head *head = guard_head_find();
	struct guard_entry *entry;
	__u64 number;
	__u32 at;

	if (!head)
		return;
	number = __sync_fetch_and_add(&head->logged, 1);
	at = number % GUARD_LOG;
	entry = bpf_map_lookup_elem(&guard_log, &at);
	if (!entry)
		return;
	__sync_lock_test_and_set(&entry->number, 0);
	entry->time_ns = bpf_ktime_get_boot_ns();
	entry->event = event;
	entry->slot = slot;
	entry->pid = bpf_get_current_pid_tgid() >> 32;
	entry->uid = (__u32)bpf_get_current_uid_gid();
	entry->kind = kind;
	entry->device = device;
	entry->amount = amount;
	entry->used = used;
	entry->limit = limit;
	bpf_get_current_comm(entry->command, sizeof(entry->command));
	__sync_lock_test_and_set(&entry->number, number + 1);
}

/* At a limit. */
static __always_inline void log_note(enum guard_event event, __u32 slot, __u32 kind, __u64 amount,
				     __u64 used, __u64 limit)
{
	log_note_device(event, slot, kind, amount, used, limit, 0);
}

/* What a limit is in the way of. */
struct lack {
	__u32 kind;
	__u32 event; /* GUARD_REFUSED, or GUARD_HOST_REFUSED */
	__u64 amount, used, limit;
};

static __always_inline int amount_fits(__s64 used, __u64 amount, __u64 limit)
{
	__u64 held = used < 0 ? 0 : (__u64)used;

	return limit == UNLIMITED || (amount <= limit && held <= limit - amount);
}

/*
 * So much more in a count if it fits below the limit. Adding first and taking back what was too
 * much would refuse others in between. The limit is read again after the count has changed: the
 * collector lowers a limit and then reads the count, so that one of the two sees the other.
 */
static __always_inline int amount_take(__s64 *count, const __u64 *limit_word, __u64 amount,
				       struct lack *lack)
{
	volatile const __u64 *limit = limit_word;
	__s64 used;

	for (int i = 0; i < ATTEMPTS; i++) {
		used = *(volatile __s64 *)count;
		lack->used = used < 0 ? 0 : (__u64)used;
		lack->limit = *limit;
		/* Without a limit there is nothing to compare with, however many others there are. */
		if (lack->limit == UNLIMITED)
			used = __sync_fetch_and_add(count, (__s64)amount);
		else if (!amount_fits(used, amount, lack->limit))
			return -EDQUOT;
		else if (__sync_val_compare_and_swap(count, used, used + (__s64)amount) != used)
			continue;
		if (amount_fits(used, amount, *limit))
			return 0;
		ADD(*count, -(__s64)amount);
	}
	/* Too many others: rather refuse one of them than nobody. */
	used = __sync_fetch_and_add(count, (__s64)amount);
	if (amount_fits(used, amount, *limit))
		return 0;
	ADD(*count, -(__s64)amount);
	return -EDQUOT;
}

/* So much more of a kind, if it fits below the limits of the tenant and of the host. */
static __always_inline int count_take(__u32 slot, __u32 kind, __u64 amount, struct lack *lack)
{
	__u32 host = GUARD_HOST;
	struct guard_counts *counts = guard_counts_find(slot), *all = guard_counts_find(host);
	struct guard_limits *limits = bpf_map_lookup_elem(&guard_limits, &slot);
	struct guard_limits *all_limits = bpf_map_lookup_elem(&guard_limits, &host);

	barrier_var(
		kind); /* checked where it is used: the verifier forgets what was checked before */
	if (!counts || !limits || !all || !all_limits || slot == GUARD_HOST || kind >= KIND_COUNT ||
	    !amount)
		return 0;
	lack->kind = kind;
	lack->amount = amount;
	lack->event = GUARD_REFUSED;
	lack->limit = AMOUNT_MOST;
	if (amount > AMOUNT_MOST)
		return -EDQUOT;
	if (amount_take(&counts->used[kind], &limits->limit[kind], amount, lack))
		return -EDQUOT;
	if (!*(volatile __u64 *)&limits->host_limited) {
		ADD(all->used[kind], (__s64)amount);
		return 0;
	}
	if (!amount_take(&all->used[kind], &all_limits->limit[kind], amount, lack))
		return 0;
	ADD(counts->used[kind], -(__s64)amount);
	lack->event = GUARD_HOST_REFUSED;
	return -EDQUOT;
}

static __always_inline void count_put(__u32 slot, __u32 kind, __s64 amount)
{
	struct guard_counts *counts = guard_counts_find(slot);
	struct guard_counts *all = guard_counts_find(GUARD_HOST);

	barrier_var(kind); /* as in count_take */
	if (!counts || !all || slot == GUARD_HOST || kind >= KIND_COUNT)
		return;
	ADD(counts->used[kind], amount);
	ADD(all->used[kind], amount);
}

/* One more place, or -ENOMEM. Between the look and the addition others may be as far: that is
 * what the reserve is for, and beyond it charges float. */
static __always_inline int table_place_take(__u32 slot, enum guard_table table, __u32 kind)
{
	struct guard_head *head = guard_head_find();
	struct guard_counts *counts = guard_counts_find(slot);
	__s64 taken, share;

	if (!head || !counts)
		return -ENOMEM;
	taken = *(volatile __s64 *)&counts->taken[table];
	share = table_place_share(head, table);
	if (taken < share) {
		table_place_add(head, counts, table, 1);
		return 0;
	}
	ADD(counts->crowded[table], 1);
	log_note(GUARD_CROWDED, slot, kind < KIND_COUNT ? kind : 0, 1, (__u64)taken,
		 share > 0 ? (__u64)share : 0);
	return -ENOMEM;
}

/* One of a kind and, of memory regions, its bytes: both, or -EDQUOT and neither. */
static __always_inline int count_reserve(__u32 slot, __u32 kind, __u64 bytes, struct lack *lack)
{
	if (kind >= KIND_COUNT)
		return 0;
	if (kind == KIND_mr_bytes)
		return count_take(slot, kind, bytes, lack);
	if (count_take(slot, kind, 1, lack))
		return -EDQUOT;
	if (kind != KIND_mr || !count_take(slot, KIND_mr_bytes, bytes, lack))
		return 0;
	count_put(slot, kind, -1);
	return -EDQUOT;
}

static __always_inline void count_refuse(__u32 slot, const struct lack *lack)
{
	struct guard_counts *counts = guard_counts_find(slot);
	struct guard_counts *all = guard_counts_find(GUARD_HOST);
	__u32 kind = lack->kind;

	barrier_var(kind); /* as in count_take */
	if (counts && kind < KIND_COUNT)
		ADD(counts->refused[kind], 1);
	if (all && kind < KIND_COUNT && lack->event == GUARD_HOST_REFUSED)
		ADD(all->refused[kind], 1);
	log_note(lack->event, slot, kind, lack->amount, lack->used, lack->limit);
}

static __always_inline void count_unreserve(__u32 slot, __u32 kind, __u64 bytes)
{
	if (kind != KIND_mr_bytes)
		count_put(slot, kind, -1);
	if (kind == KIND_mr || kind == KIND_mr_bytes)
		count_put(slot, KIND_mr_bytes, -(__s64)bytes);
}

/* What is charged, or reserved with a place for its charge. */
static __always_inline void count_give_back(__u32 slot, __u32 kind, __u64 bytes)
{
	count_unreserve(slot, kind, bytes);
	table_place_add_to(slot, GUARD_OBJECTS, -1);
}

/* What is charged, and its object not known, or no place in the table for it: it counts until
 * somebody has looked. */
static __always_inline void count_set_afloat(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = guard_counts_find(slot);

	if (!counts || kind >= KIND_COUNT)
		return;
	ADD(counts->afloat, 1);
	if (kind != KIND_mr_bytes)
		ADD(counts->floating[kind], 1);
	if (kind == KIND_mr || kind == KIND_mr_bytes)
		ADD(counts->floating[KIND_mr_bytes], (__s64)bytes);
}

#endif
