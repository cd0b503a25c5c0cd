/* SPDX-License-Identifier: MIT */
/*
 * What was missed, where the kernel skips programs now and then: a charge whose object ended unseen,
 * and a reservation whose object was made unseen. Both are put right from the objects themselves,
 * before anybody is refused for them. For the guard's programs only.
 */
#ifndef MONITOR_GUARD_STALE_BPF_H
#define MONITOR_GUARD_STALE_BPF_H

#include "monitor/guard/counts.bpf.h"

/* Not 0: this kernel skips programs now and then. The loader writes it. */
const volatile __u32 skips_programs = 0;

static __always_inline void charge_drop(__u64 address)
{
	struct guard_charge *found = bpf_map_lookup_elem(&guard_charges, &address), charge;

	if (!found)
		return;
	charge = *found;
	if (!bpf_map_delete_elem(&guard_charges, &address))
		count_give_back(charge.slot, charge.kind, charge.bytes);
}

/* Whether an object that was charged is no more. It has the driver's part from before the commit,
 * where it is charged, until it is destroyed; what lies there afterwards has another type or file,
 * or is a new object, which gets a charge of its own when it is committed. */
static __always_inline int charge_is_stale(__u64 address, const struct guard_charge *charge)
{
	struct uobject_facts what = uobject_facts_copied((const struct ib_uobject *)address);

	return !what.hardware || counter_of(what.type) != charge->kind || what.file != charge->file;
}

/* The charge of an object that was found to be no more. Between the look and the removal another
 * object may have come to be there: then its charge is put back. */
static __always_inline void charge_drop_stale(__u64 address, struct guard_charge charge)
{
	if (bpf_map_delete_elem(&guard_charges, &address))
		return;
	if (charge_is_stale(address, &charge) ||
	    bpf_map_update_elem(&guard_charges, &address, &charge, BPF_NOEXIST))
		count_give_back(charge.slot, charge.kind, charge.bytes);
}

struct stale_search {
	__u32 slot, kind;
};

static long stale_step(void *map, __u64 *key, struct guard_charge *charge,
		       struct stale_search *search)
{
	__u64 address = *key;

	if (charge->slot != search->slot || charge->kind != search->kind ||
	    !charge_is_stale(address, charge))
		return 0;
	charge_drop_stale(address, *charge);
	return 0;
}

/* Gives back what a tenant is charged for objects of a kind that are no more. The verifier looks at
 * this function, and at those below that are not static, by themselves. */
__noinline int stale_drop(__u32 slot, __u32 kind)
{
	struct stale_search search = { slot, kind == KIND_mr_bytes ? KIND_mr : kind };

	bpf_for_each_map_elem(&guard_charges, stale_step, &search, 0);
	return 0;
}

enum { SETTLE_STEPS = 512 }; /* objects of a file that are looked at, the newest first */

struct settle_search {
	__u64 first, at; /* in the file's list */
	__u64 bytes;
	__u32 slot, kind;
	__u32 settled;
};

static long settle_step(__u32 index, struct settle_search *search)
{
	struct guard_charge charge = { .slot = search->slot, .kind = (__u16)search->kind }, *known;
	struct uobject_facts what;
	__u64 address;

	search->at = word_at(search->at);
	if (!search->at)
		return 1;
	if (search->at == search->first) { /* that were all */
		count_give_back(search->slot, search->kind, search->bytes);
		search->settled = 1;
		return 1;
	}
	address = search->at - bpf_core_field_offset(struct ib_uobject, list);
	what = uobject_facts_copied((const struct ib_uobject *)address);
	if (!what.hardware || counter_of(what.type) != search->kind)
		return 0;
	known = bpf_map_lookup_elem(&guard_charges, &address);
	if (known && charge_is_stale(address, known))
		charge_drop_stale(address, *known);
	charge.file = what.file;
	charge.bytes = search->bytes;
	if (search->kind == KIND_mr && region_bytes(what.hardware))
		charge.bytes = region_bytes(what.hardware);
	if (bpf_map_update_elem(&guard_charges, &address, &charge, BPF_NOEXIST))
		return 0; /* it has one */
	if (search->kind == KIND_mr)
		count_put(search->slot, KIND_mr_bytes, (__s64)(charge.bytes - search->bytes));
	search->settled = 1;
	return 1;
}

/*
 * The commit of a command was not seen, or its end was not. Every object that is in its file's list
 * has a charge, but for those whose commit was not seen. So the reservation becomes the charge of
 * the newest object of that kind that has none. If all have one, the command has made nothing, or
 * its object is gone, or stands where an older one ended unseen and has that one's charge: it is
 * given back. 0: the list could not be read to its end.
 */
__noinline int reservation_settle(__u64 file, __u32 slot, __u32 kind, __u64 bytes)
{
	__u64 first = file + offsets.file_uobjects;
	struct settle_search search = { first, first, bytes, slot, kind, 0 };

	if (!file || kind == KIND_mr_bytes)
		return 0;
	bpf_loop(SETTLE_STEPS, settle_step, &search, 0);
	return (int)search.settled;
}

/* Reserves an object and a place for its charge: 0, EDQUOT or ENOMEM. */
__noinline int reserve_with_place(__u32 slot, __u32 kind, __u64 bytes)
{
	struct lack lack = {};

	int failed = count_reserve(slot, kind, bytes, &lack);

	/* Once more, also if nothing was found: the loader may have found it at the same moment. */
	if (failed && skips_programs && lack.amount <= lack.limit) {
		stale_drop(slot, lack.kind);
		failed = count_reserve(slot, kind, bytes, &lack);
	}
	if (failed) {
		count_refuse(slot, &lack);
		return EDQUOT;
	}
	if (!table_place_take(slot, GUARD_OBJECTS, kind))
		return 0;
	count_unreserve(slot, kind, bytes);
	return ENOMEM;
}

#endif
