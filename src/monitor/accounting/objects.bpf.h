/* SPDX-License-Identifier: MIT */
/*
 * Objects: charged to a row when they are made, and uncharged when they are gone. Each happens
 * once.
 */
#ifndef MONITOR_ACCOUNTING_OBJECTS_BPF_H
#define MONITOR_ACCOUNTING_OBJECTS_BPF_H

#include "monitor/accounting/rows.bpf.h"

static __always_inline void object_tally(__u64 side[MONITOR_COUNTERS],
					 const struct monitor_object *object)
{
	if (object->counter >= MONITOR_COUNTERS)
		return;
	ADD(side[object->counter], 1);
	switch (object->counter) {
	case KIND_mr:
		ADD(side[KIND_mr_bytes], object->size);
		break;
	case KIND_cq:
		ADD(side[KIND_cqe], object->size);
		break;
	case KIND_qp:
		ADD(side[KIND_send_wr], object->size);
		ADD(side[KIND_recv_wr], object->size2);
		break;
	case MONITOR_other:
		if (object->type == UVERBS_OBJECT_DM)
			ADD(side[KIND_dm_bytes], object->size);
		break;
	}
}

/* Rows have zeroes after the name of the device, and so has the filter: words are compared. */
static __always_inline bool event_is_wanted(const struct monitor_filter *wanted,
					    const struct monitor_row *row,
					    const struct monitor_object *object)
{
	const __u64 *name = (const __u64 *)wanted->device_name;
	const __u64 *device = (const __u64 *)row->device_name;

	if ((wanted->pid && wanted->pid != row->pid) ||
	    (wanted->cgroup && wanted->cgroup != row->cgroup) ||
	    (wanted->counters && !(wanted->counters >> (object->counter & 63) & 1)))
		return false;
	if (!name[0])
		return true;
#pragma unroll
	for (int i = 0; i < NAME_SIZE / 8; i++)
		if (name[i] != device[i])
			return false;
	return true;
}

static __always_inline void event_send(enum monitor_event_type type, const struct monitor_row *row,
				       const struct monitor_object *object)
{
	struct monitor_head *now = head_find();
	struct monitor_event *event;

	if (!now || !now->events_until || now->events_until < bpf_ktime_get_boot_ns())
		return;
	/* Before there is room taken: what nobody wants must not push out what somebody does. */
	if (now->events_wanted.is_set && !event_is_wanted(&now->events_wanted, row, object))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		ADD(now->dropped, 1);
		return;
	}
	event->time_ns = bpf_ktime_get_boot_ns();
	event->type = type;
	event->pid = row->pid;
	event->object = *object;
	__builtin_memcpy(event->device_name, row->device_name, sizeof(event->device_name));
	__builtin_memcpy(event->command, row->command, sizeof(event->command));
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* How many there are of which something is not known. */
static __always_inline void object_unknown_add(const struct monitor_object *object, __s64 amount)
{
	struct monitor_head *written = object->flags ? head_find() : NULL;

	if (!written)
		return;
	if (object->flags & MONITOR_DEPTHLESS)
		ADD(written->depthless, amount);
	else
		ADD(written->lengthless, amount);
}

/* Charged before it can be found, so that nothing is gone before it was made. One that was
 * announced has its place already. */
static __always_inline int object_add(__u64 address, struct monitor_object *object,
				      struct monitor_object *announced,
				      enum monitor_event_type type)
{
	struct monitor_row *row = row_at(object->row);
	int failed = 0;

	if (!row)
		return 0;
	object->made_ns = bpf_ktime_get_boot_ns();
	ADD(row->live, 1);
	object_tally(row->made, object);
	if (announced)
		*announced = *object;
	else
		failed = bpf_map_update_elem(&objects, &address, object, BPF_NOEXIST);
	if (failed) {
		object_tally(row->gone, object);
		ADD(row->live, -1);
		if (failed != -17 /* EEXIST */)
			HEAD_ADD(lost_objects, 1);
		row_may_go(row, object->row);
		return 0;
	}
	object_unknown_add(object, 1);
	event_send(type, row, object);
	return 1;
}

static __always_inline void object_remove(__u64 address)
{
	struct monitor_object *found = bpf_map_lookup_elem(&objects, &address), object;
	struct monitor_row *row;

	if (!found)
		return;
	object = *found;
	if (bpf_map_delete_elem(&objects, &address) || object.counter == MONITOR_ANNOUNCED)
		return;
	row = row_at(object.row);
	if (!row)
		return;
	object_unknown_add(&object, -1);
	object_tally(row->gone, &object);
	event_send(MONITOR_GONE, row, &object);
	ADD(row->live, -1);
	row_may_go(row, object.row);
}

static __always_inline struct uobject_facts uobject_facts_direct(const struct ib_uobject *uobject)
{
	return (struct uobject_facts){ type_number(uobject->uapi_object), uobject->object,
				       (__u64)uobject->ufile };
}

static __always_inline void object_describe(struct uobject_facts what,
					    const struct monitor_object *announced,
					    struct monitor_object *object)
{
	const void *hardware = what.hardware;

	object->type = (__u16)what.type;
	object->file = what.file;
	object->counter = counter_of(what.type);
	switch (object->counter) {
	case KIND_mr:
		object->size = region_bytes(hardware);
		if (!object->size && !region_is_whole(hardware))
			object->flags = MONITOR_LENGTHLESS;
		break;
	case KIND_cq:
		object->size = (__u32)BPF_CORE_READ((const struct ib_cq *)hardware, cqe);
		break;
	case KIND_qp:
		object->number = BPF_CORE_READ((const struct ib_qp *)hardware, qp_num);
		object->subtype = (__u16)BPF_CORE_READ((const struct ib_qp *)hardware, qp_type);
		if (announced) {
			object->size = announced->size;
			object->size2 = announced->size2;
		} else {
			object->flags = MONITOR_DEPTHLESS;
		}
		break;
	case MONITOR_other:
		if (what.type == UVERBS_OBJECT_DM)
			object->size = BPF_CORE_READ((const struct ib_dm *)hardware, length);
		break;
	}
}

/* What is known at an address where something is just being made ended unseen: a call that was
 * missed. Returns the object that is announced there, or NULL. */
static __always_inline struct monitor_object *object_clear_stale(__u64 address)
{
	struct monitor_object *known = bpf_map_lookup_elem(&objects, &address);

	if (known && known->counter != MONITOR_ANNOUNCED) {
		object_remove(address);
		known = NULL;
	}
	return known;
}

static __always_inline int uobject_add(__u64 address, struct uobject_facts what,
				       struct maker *maker, struct monitor_object *announced,
				       enum monitor_event_type how)
{
	struct monitor_object object = {};

	object_describe(what, announced, &object);
	object.cgroup = maker->cgroup;
	object.row = row_for(maker);
	return object_add(address, &object, announced, how);
}

/* Contexts, by the address of their charge to the cgroup; and connection identifiers. */
static __always_inline int plain_add(__u64 address, __u16 counter, struct maker *maker,
				     enum monitor_event_type how)
{
	struct monitor_object object = { .counter = counter };

	object.row = row_for(maker);
	return object_add(address, &object, NULL, how);
}

#endif
