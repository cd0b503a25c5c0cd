/* SPDX-License-Identifier: MIT */
/*
 * Objects that are older than the accounting, or were missed: found in the kernel's own lists of
 * open files, a part of each list in one pass. Passes are repeated until each list was read to its
 * end. A pass comes to a file once for each descriptor that leads to it; only the first of them
 * reads on, so that what is found belongs to one process. A long list that was read to its end is
 * marked, and not begun again before the loader clears the cursors.
 */
#ifndef MONITOR_ACCOUNTING_SEED_BPF_H
#define MONITOR_ACCOUNTING_SEED_BPF_H

#include "monitor/accounting/objects.bpf.h"

enum { SEED_STEP = 512 }; /* objects of one file in one pass */

/* How far the objects of a file were read: the address of the last one with the number of the pass
 * in the bits that addresses do not use; or CURSOR_END. */
enum { CURSOR_END = 1, CURSOR_PASS = 7 };
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} cursors SEC(".maps");

/* Found in a list while its destruction may be under way: then that came too early for us. */
static __always_inline int seed_found(__u64 address, int added)
{
	struct monitor_object *object;

	if (!added)
		return 0;
	HEAD_ADD(seeded, 1);
	object = bpf_map_lookup_elem(&objects, &address);
	if (object && !is_alive(address, object))
		object_remove(address);
	return 0;
}

__noinline int seed_uobject(__u64 address, __u64 leader)
{
	const struct ib_uobject *uobject = (const struct ib_uobject *)address;
	struct monitor_object *known = bpf_map_lookup_elem(&objects, &address);
	struct uobject_facts what = uobject_facts_copied(uobject);
	struct maker maker;

	/* One that is announced and in the list was committed, and that was missed. */
	if (!what.hardware || (known && known->counter != MONITOR_ANNOUNCED))
		return 0;
	maker_other(&maker, (const struct task_struct *)leader,
		    BPF_CORE_READ(uobject, context, device));
	return seed_found(address, uobject_add(address, what, &maker, known, MONITOR_FOUND));
}

__noinline int seed_plain(__u64 address, __u64 leader, __u64 device, __u32 counter)
{
	struct maker maker;

	if (bpf_map_lookup_elem(&objects, &address))
		return 0;
	maker_other(&maker, (const struct task_struct *)leader, (const struct ib_device *)device);
	return seed_found(address, plain_add(address, (__u16)counter, &maker, MONITOR_FOUND));
}

static __always_inline __u64 seed_pass(void)
{
	struct monitor_head *head = head_find();

	return head ? head->seed_pass & CURSOR_PASS : 0;
}

/* Where to go on in the list of a file: after the object that was last, if that still is
 * one, else at the beginning; CURSOR_END: not at all in this pass. */
static __always_inline __u64 seed_cursor(__u64 file)
{
	__u64 *last = bpf_map_lookup_elem(&cursors, &file), address;

	if (!last)
		return 0;
	address = *last & ~(__u64)CURSOR_PASS;
	if (!address || (*last & CURSOR_PASS) == seed_pass())
		return CURSOR_END;
	return bpf_map_lookup_elem(&objects, &address) ? address : 0;
}

/* The list was read to its end. One that is read in a single pass needs no mark. */
static __always_inline int seed_end(__u64 file)
{
	const __u64 end = CURSOR_END;

	bpf_map_update_elem(&cursors, &file, &end, BPF_EXIST);
	return 0;
}

static __always_inline void seed_stop(__u64 file, __u64 last)
{
	last |= seed_pass();
	bpf_map_update_elem(&cursors, &file, &last, BPF_ANY);
	HEAD_ADD(seed_unfinished, 1);
}

static __always_inline int seed_uverbs(__u64 file, __u64 leader)
{
	__u64 context = word_at(file + offsets.file_ucontext), first = file + offsets.file_uobjects;
	__u64 at = first, uobject = seed_cursor(file);

	if (!context || uobject == CURSOR_END)
		return 0;
	if (uobject)
		at = uobject + bpf_core_field_offset(struct ib_uobject, list);
	else
		seed_plain(context + bpf_core_field_offset(struct ib_ucontext, cg_obj), leader,
			   (__u64)BPF_CORE_READ((struct ib_ucontext *)context, device), KIND_ctx);
	for (int i = 0; i < SEED_STEP; i++) {
		at = word_at(at);
		if (at == first || !at)
			return seed_end(file);
		uobject = at - bpf_core_field_offset(struct ib_uobject, list);
		seed_uobject(uobject, leader);
	}
	seed_stop(file, uobject);
	return 0;
}

static __always_inline int seed_ids(__u64 file, __u64 leader)
{
	__u64 first = file + offsets.ucm_contexts, at = first, id = seed_cursor(file);

	if (id == CURSOR_END)
		return 0;
	if (id)
		at = word_at(id + offsets.cm_id_context) + offsets.ucm_list;
	for (int i = 0; i < SEED_STEP; i++) {
		at = word_at(at);
		if (at == first || !at)
			return seed_end(file);
		id = word_at(at - offsets.ucm_list + offsets.ucm_cm_id);
		if (id && id < (__u64)-4095)
			seed_plain(id, leader, 0, KIND_cm_id);
	}
	seed_stop(file, id);
	return 0;
}

#endif
