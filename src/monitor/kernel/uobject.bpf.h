/* SPDX-License-Identifier: MIT */
/* What the kernel's objects are to us; for programs in the kernel only, by their compiler. */
#ifndef MONITOR_KERNEL_UOBJECT_BPF_H
#define MONITOR_KERNEL_UOBJECT_BPF_H

#include "monitor/kernel/offsets.h"
#include "monitor/kernel/structures.h"
#include "monitor/kernel/uverbs.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "monitor/reader/rows.h"

/* Where fields of the modules' structures lie; the loader writes them. */
const volatile struct kernel_offsets offsets = {
#define OFFSET(name, structure, member, old) .name = old,
#include "monitor/kernel/offsets.def"
#undef OFFSET
};

#define ADD(word, amount) ((void)__sync_fetch_and_add(&(word), (amount)))

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
	return word;
}

/* The type's description is in no kernel's own types: its number is always copied. */
static __always_inline __u32 type_number(const void *api)
{
	__u32 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), (const char *)api + offsets.api_object_id);
	return number;
}

/* enum monitor_counter, by the kernel's number of the type (enum uverbs_default_objects). */
static __always_inline __u16 counter_of(__u32 type)
{
	switch (type) {
#define UOBJECT(object, kind)                                                                      \
	case object:                                                                               \
		return kind;
#include "monitor/kernel/uverbs.def"
	}
	return type >= UVERBS_DRIVER ? MONITOR_driver : MONITOR_other;
}

/* A region of all memory, paged in as it is used, pins none of it. */
static __always_inline int region_is_whole(const struct ib_mr *region)
{
	return BPF_CORE_READ(region, length) == ~0ull;
}

static __always_inline __u64 region_bytes(const struct ib_mr *region)
{
	return region_is_whole(region) ? 0 : BPF_CORE_READ(region, length);
}

/* The object that is charged to a cgroup. */
static __always_inline __u64 uobject_of_charge(__u64 charge)
{
	return charge - bpf_core_field_offset(struct ib_uobject, cg_obj);
}

struct uobject_facts {
	__u32 type;
	const void *hardware; /* the driver's part: struct ib_qp and so on */
	__u64 file;
};

static __always_inline struct uobject_facts uobject_facts_copied(const struct ib_uobject *uobject)
{
	const void *api = BPF_CORE_READ(uobject, uapi_object);

	return (struct uobject_facts){ type_number(api), BPF_CORE_READ(uobject, object),
				       (__u64)BPF_CORE_READ(uobject, ufile) };
}

/* So long after it was first seen, an object may be in no list yet. */
enum { BEING_MADE_NS = 20000000 };

/* Whether an address is still what it was taken for. */
static __always_inline int is_alive(__u64 address, const struct monitor_object *object)
{
	const struct ib_uobject *uobject = (const struct ib_uobject *)address;
	struct uobject_facts what;
	__u64 list, next;

	if (object->counter == KIND_ctx) {
		__u64 context = address - bpf_core_field_offset(struct ib_ucontext, cg_obj);
		__u64 file = (__u64)BPF_CORE_READ((struct ib_ucontext *)context, ufile);

		return word_at(file + offsets.file_ucontext) == context;
	}
	if (object->counter == KIND_cm_id)
		return word_at(word_at(address + offsets.cm_id_context) + offsets.ucm_cm_id) ==
		       address;
	what = uobject_facts_copied(uobject);
	list = address + bpf_core_field_offset(struct ib_uobject, list);
	next = word_at(list);
	return next != list && (__u16)what.type == object->type && what.file == object->file &&
	       word_at(next + bpf_core_field_offset(struct list_head, prev)) == list;
}

#endif
