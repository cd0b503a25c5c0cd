/* SPDX-License-Identifier: MIT */
/*
 * What is done at each hook of hooks.def, however its program is attached.
 */
#ifndef MONITOR_ACCOUNTING_HOOKS_BPF_H
#define MONITOR_ACCOUNTING_HOOKS_BPF_H

#include "monitor/accounting/objects.bpf.h"

/* An object that could not be destroyed is still there. Files are destroyed twice. */
static __always_inline int hook_destroy(const struct ib_uobject *uobject, int result)
{
	if (!result)
		object_remove((__u64)uobject);
	return 0;
}

/* A lock for writing on a memory region ends: it may have been registered anew in place. */
static __always_inline int hook_changed(const struct ib_uobject *uobject, int mode)
{
	__u64 address = (__u64)uobject, length;
	struct monitor_object *object;
	struct monitor_row *row;
	struct uobject_facts what;

	if (mode != LOOKUP_WRITE)
		return 0;
	what = uobject_facts_copied(uobject);
	object = what.type == UVERBS_OBJECT_MR ? bpf_map_lookup_elem(&objects, &address) : NULL;
	if (!object)
		return 0;
	length = region_bytes(what.hardware);
	row = row_at(object->row);
	if (!row || length == object->size)
		return 0;
	if (length > object->size)
		ADD(row->made[KIND_mr_bytes], length - object->size);
	else
		ADD(row->gone[KIND_mr_bytes], object->size - length);
	object->size = length;
	event_send(MONITOR_CHANGED, row, object);
	return 0;
}

/* A queue pair is about to be committed, or aborted; its depths are known only here. */
static __always_inline int hook_depths(__u64 uobject, __u32 send, __u32 receive)
{
	struct monitor_object object = {
		.counter = MONITOR_ANNOUNCED,
		.size = send,
		.size2 = receive,
	};

	if (!uobject || !bpf_map_update_elem(&objects, &uobject, &object, BPF_NOEXIST))
		return 0;
	object_clear_stale(uobject);
	bpf_map_update_elem(&objects, &uobject, &object, BPF_ANY);
	return 0;
}

/* An object that is a file of its own, as completion channels are, is closed: hook_destroy follows,
 * or was long before, with the context. */
static __always_inline int hook_released(__u64 uobject)
{
	object_remove(uobject);
	return 0;
}

/* It may be gone already, with its device. */
static __always_inline int hook_context_made(__u64 attrs, int result)
{
	__u64 context = result ? 0 : word_at(attrs + offsets.bundle_context),
	      charge = context + bpf_core_field_offset(struct ib_ucontext, cg_obj);
	const struct monitor_object as_context = { .counter = KIND_ctx };
	struct maker maker;

	if (!context)
		return 0;
	maker_copied(&maker, BPF_CORE_READ((struct ib_ucontext *)context, device));
	object_clear_stale(charge);
	plain_add(charge, KIND_ctx, &maker, MONITOR_MADE);
	if (!is_alive(charge, &as_context))
		object_remove(charge);
	return 0;
}

static __always_inline int hook_uncharged(__u64 charge, int type)
{
	if (type == CG_HANDLE)
		object_remove(charge);
	return 0;
}

static __always_inline int hook_id_made(__u64 id)
{
	struct maker maker;

	if (!id || id >= (__u64)-4095)
		return 0;
	maker_copied(&maker, NULL);
	object_clear_stale(id);
	plain_add(id, KIND_cm_id, &maker, MONITOR_MADE);
	return 0;
}

/* A request to connect makes an identifier for whoever has the one that listens. */
static __always_inline int hook_id_asked(__u64 id, __u64 event)
{
	struct monitor_object object = { .counter = KIND_cm_id }, *listener;
	__u64 context, address;

	if ((__u32)word_at(event) != CM_CONNECT_REQUEST)
		return 0;
	context = word_at(id + offsets.cm_id_context);
	address = word_at(context + offsets.ucm_cm_id);
	listener = bpf_map_lookup_elem(&objects, &address);
	if (!listener)
		return 0;
	object.row = listener->row;
	object_clear_stale(id);
	object_add(id, &object, NULL, MONITOR_MADE);
	return 0;
}

/* The private part of an identifier begins with the public one. */
static __always_inline int hook_id_gone(__u64 id)
{
	object_remove(id);
	return 0;
}

#endif
