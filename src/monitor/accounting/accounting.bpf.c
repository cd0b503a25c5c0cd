/* SPDX-License-Identifier: MIT */
/*
 * The accounting in the kernel: every object that a process makes through the verbs
 * or the connection manager, charged to the process that made it and uncharged when
 * the kernel destroys it, whoever causes that. Only watches; nothing here can make a
 * call fail. rows.h is what it writes, hooks.def where it listens.
 *
 * Compiled for the oldest kernel: additions return nothing (no fetch before 5.12), so
 * what must happen once happens where a key is deleted from a table, which succeeds once.
 */
#include "monitor/kernel/uobject.bpf.h"

#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
	ROWS_OF_PROCESS = 32, /* devices times cgroups */
	SEED_STEP = 512,      /* objects of one file in one pass */
};

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

/* By address. The loader sets size and flags. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct monitor_object);
} objects SEC(".maps");

struct kept {
	__u64 first, second;
};

/* Arguments from the entry of a function to its return, by thread and hook. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct kept);
} kept SEC(".maps");

/* How far the objects of a file were read: the last one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} cursors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static __always_inline struct monitor_head *the_head(void)
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
		struct monitor_head *written = the_head();                                         \
		if (written)                                                                       \
			ADD(written->field, amount);                                               \
	})

/* ---- rows */

/* Who makes an object, and where. */
struct maker {
	struct row_key key;
	__u64 cgroup;
	const struct ib_device *device; /* may be NULL */
	__u32 device_index;
	const struct task_struct *leader;
};

/*
 * The same is found out in two ways. Programs on fentry follow the kernel's pointers as if
 * they were their own, which costs an instruction each; those on kprobes, and those that were
 * given an address only, must have each word copied, which costs a hundred.
 */

static __always_inline void maker_current(struct maker *maker, const struct task_struct *leader,
					  __u64 start_ns, const struct ib_device *device,
					  __u32 device_index)
{
	*maker = (struct maker){
		.key = { .pid = bpf_get_current_pid_tgid() >> 32, .start_ns = start_ns },
		.cgroup = bpf_get_current_cgroup_id(),
		.device = device,
		.device_index = device ? device_index : MONITOR_NO_DEVICE,
		.leader = leader,
	};
}

static __always_inline void maker_direct(struct maker *maker, struct ib_device *device)
{
	struct task_struct *leader = bpf_get_current_task_btf()->group_leader;

	maker_current(maker, leader, leader->start_boottime, device, device ? device->index : 0);
}

static __always_inline void maker_copied(struct maker *maker, const struct ib_device *device)
{
	const struct task_struct *self = (const struct task_struct *)bpf_get_current_task();
	const struct task_struct *leader = BPF_CORE_READ(self, group_leader);

	maker_current(maker, leader, BPF_CORE_READ(leader, start_boottime), device,
		      BPF_CORE_READ(device, index));
}

/* Not the current process, but the one whose leader this is. */
static __always_inline void maker_other(struct maker *maker, const struct task_struct *leader,
					const struct ib_device *device)
{
	*maker = (struct maker){
		.key = { .pid = BPF_CORE_READ(leader, tgid),
			 .start_ns = BPF_CORE_READ(leader, start_boottime) },
		.cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id),
		.device = device,
		.device_index = device ? BPF_CORE_READ(device, index) : MONITOR_NO_DEVICE,
		.leader = leader,
	};
}

/* A vacant row, filled and not yet known to others; 0 when there is none. */
static __always_inline __u32 row_take(const struct maker *maker)
{
	/* Named apart: a chain of accesses that began with our own structure would be taken for
	 * one of the kernel's. */
	const struct task_struct *leader = maker->leader;
	const struct ib_device *device = maker->device;
	struct monitor_row *row;
	__u32 number = 0;

	if (bpf_map_pop_elem(&vacant, &number))
		return 0;
	row = row_at(number);
	if (!row)
		return 0;
	row->start_ns = maker->key.start_ns;
	row->cgroup = maker->cgroup;
	row->live = 0;
	row->pid = maker->key.pid;
	row->nth = maker->key.nth;
	row->exited = 0;
	row->uid = BPF_CORE_READ(leader, cred, uid.val);
	row->device = maker->device_index;
	row->device_name[0] = '\0';
	if (device)
		bpf_core_read_str(row->device_name, sizeof(row->device_name), &device->name);
	bpf_core_read_str(row->command, sizeof(row->command), &leader->comm);
	__builtin_memset(row->made, 0, sizeof(row->made));
	__builtin_memset(row->gone, 0, sizeof(row->gone));
	/* Last, and a full barrier: who sees it odd sees the rest. */
	ADD(row->generation, 1);
	return number;
}

static __always_inline void row_vacate(struct monitor_row *row, __u32 number)
{
	ADD(row->generation, 1);
	bpf_map_push_elem(&vacant, &number, BPF_ANY);
}

/* The row for a maker; the first one, of nobody, when there is no other left. */
static __always_inline __u32 row_for(struct maker *maker)
{
	for (__u32 nth = 0; nth < ROWS_OF_PROCESS; nth++) {
		struct monitor_row *row;
		__u32 *found, number;

		maker->key.nth = nth;
		found = bpf_map_lookup_elem(&owners, &maker->key);
		if (!found) {
			number = row_take(maker);
			if (!number)
				break;
			/* Another thread of the process may be as far: one of us is too late. */
			if (bpf_map_update_elem(&owners, &maker->key, &number, BPF_NOEXIST)) {
				row = row_at(number);
				if (row)
					row_vacate(row, number);
				found = bpf_map_lookup_elem(&owners, &maker->key);
				if (!found)
					break;
			}
		}
		if (found)
			number = *found;
		row = row_at(number);
		if (row && row->device == maker->device_index && row->cgroup == maker->cgroup)
			return number;
	}
	HEAD_ADD(lost_rows, 1);
	return 0;
}

/* Once its process has ended nobody adds to a row: it may go with its last object. */
static __always_inline void row_may_go(struct monitor_row *row, __u32 number)
{
	struct row_key key = { row->pid, row->nth, row->start_ns };

	if (number && *(volatile __u32 *)&row->exited && *(volatile __s64 *)&row->live == 0 &&
	    bpf_map_delete_elem(&owners, &key) == 0)
		row_vacate(row, number);
}

/* ---- objects */

static __always_inline void tally(__u64 side[MONITOR_COUNTERS], const struct monitor_object *object)
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
		if (object->type == UVERBS_DM)
			ADD(side[KIND_dm_bytes], object->size);
		break;
	}
}

static __always_inline void tell(enum monitor_event_type type, const struct monitor_row *row,
				 const struct monitor_object *object)
{
	struct monitor_head *now = the_head();
	struct monitor_event *event;

	if (!now || !now->events_until || now->events_until < bpf_ktime_get_boot_ns())
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
static __always_inline void ignorance_add(const struct monitor_object *object, __s64 amount)
{
	struct monitor_head *written = object->flags ? the_head() : NULL;

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
	tally(row->made, object);
	if (announced)
		*announced = *object;
	else
		failed = bpf_map_update_elem(&objects, &address, object, BPF_NOEXIST);
	if (failed) {
		tally(row->gone, object);
		ADD(row->live, -1);
		if (failed != -17 /* EEXIST */)
			HEAD_ADD(lost_objects, 1);
		row_may_go(row, object->row);
		return 0;
	}
	ignorance_add(object, 1);
	tell(type, row, object);
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
	ignorance_add(&object, -1);
	tally(row->gone, &object);
	tell(MONITOR_GONE, row, &object);
	ADD(row->live, -1);
	row_may_go(row, object.row);
}

static __always_inline struct what what_direct(const struct ib_uobject *uobject)
{
	return (struct what){ type_number(uobject->uapi_object), uobject->object,
			      (__u64)uobject->ufile };
}

static __always_inline void describe(struct what what, const struct monitor_object *announced,
				     struct monitor_object *object)
{
	const void *hardware = what.hardware;

	object->type = (__u16)what.type;
	object->file = what.file;
	object->counter = counter_of(what.type);
	switch (object->counter) {
	case KIND_mr:
		object->size = region_bytes(hardware);
		if (!object->size && !is_whole(hardware))
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
		if (what.type == UVERBS_DM)
			object->size = BPF_CORE_READ((const struct ib_dm *)hardware, length);
		break;
	}
}

/* What is known at an address where something is just being made ended unseen: a call that was
 * missed. Returns the object that is announced there, or NULL. */
static __always_inline struct monitor_object *clear_for(__u64 address)
{
	struct monitor_object *known = bpf_map_lookup_elem(&objects, &address);

	if (known && known->counter != MONITOR_ANNOUNCED) {
		object_remove(address);
		known = NULL;
	}
	return known;
}

static __always_inline int uobject_add(__u64 address, struct what what, struct maker *maker,
				       struct monitor_object *announced,
				       enum monitor_event_type how)
{
	struct monitor_object object = {};

	describe(what, announced, &object);
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

/* ---- the hooks: what is done; each is attached in one of two ways below */

/* An object that could not be destroyed is still there. Files are destroyed twice. */
static __always_inline int on_destroy(const struct ib_uobject *uobject, int result)
{
	if (!result)
		object_remove((__u64)uobject);
	return 0;
}

/* A lock for writing on a memory region ends: it may have been registered anew in place. */
static __always_inline int on_changed(const struct ib_uobject *uobject, int mode)
{
	__u64 address = (__u64)uobject, length;
	struct monitor_object *object;
	struct monitor_row *row;
	struct what what;

	if (mode != LOOKUP_WRITE)
		return 0;
	what = what_copied(uobject);
	object = what.type == UVERBS_MR ? bpf_map_lookup_elem(&objects, &address) : NULL;
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
	tell(MONITOR_CHANGED, row, object);
	return 0;
}

/* A queue pair is about to be committed, or aborted; its depths are known only here. */
static __always_inline int on_depths(__u64 uobject, __u32 send, __u32 receive)
{
	struct monitor_object object = {
		.counter = MONITOR_ANNOUNCED,
		.size = send,
		.size2 = receive,
	};

	if (!uobject || !bpf_map_update_elem(&objects, &uobject, &object, BPF_NOEXIST))
		return 0;
	clear_for(uobject);
	bpf_map_update_elem(&objects, &uobject, &object, BPF_ANY);
	return 0;
}

/* An object that is a file of its own, as completion channels are, is closed: on_destroy follows,
 * or was long before, with the context. */
static __always_inline int on_released(__u64 uobject)
{
	object_remove(uobject);
	return 0;
}

/* It may be gone already, with its device. */
static __always_inline int on_context_made(__u64 attrs, int result)
{
	__u64 context = result ? 0 : word_at(attrs + offset_bundle_context),
	      charge = context + bpf_core_field_offset(struct ib_ucontext, cg_obj);
	const struct monitor_object as_context = { .counter = KIND_ctx };
	struct maker maker;

	if (!context)
		return 0;
	maker_copied(&maker, BPF_CORE_READ((struct ib_ucontext *)context, device));
	clear_for(charge);
	plain_add(charge, KIND_ctx, &maker, MONITOR_MADE);
	if (!is_alive(charge, &as_context))
		object_remove(charge);
	return 0;
}

static __always_inline int on_uncharged(__u64 charge, int type)
{
	if (type == CG_HANDLE)
		object_remove(charge);
	return 0;
}

static __always_inline int on_id_made(__u64 id)
{
	struct maker maker;

	if (!id || id >= (__u64)-4095)
		return 0;
	maker_copied(&maker, NULL);
	clear_for(id);
	plain_add(id, KIND_cm_id, &maker, MONITOR_MADE);
	return 0;
}

/* A request to connect makes an identifier for whoever has the one that listens. */
static __always_inline int on_id_asked(__u64 id, __u64 event)
{
	struct monitor_object object = { .counter = KIND_cm_id }, *listener;
	__u64 context, address;

	if ((__u32)word_at(event) != CM_CONNECT_REQUEST)
		return 0;
	context = word_at(id + offset_cm_id_context);
	address = word_at(context + offset_ucm_cm_id);
	listener = bpf_map_lookup_elem(&objects, &address);
	if (!listener)
		return 0;
	object.row = listener->row;
	clear_for(id);
	object_add(id, &object, NULL, MONITOR_MADE);
	return 0;
}

/* The private part of an identifier begins with the public one. */
static __always_inline int on_id_gone(__u64 id)
{
	object_remove(id);
	return 0;
}

/* ---- attached by fentry and fexit */

SEC("fentry/rdma_alloc_commit_uobject")
int BPF_PROG(f_commit, struct ib_uobject *uobject)
{
	struct maker maker;

	maker_direct(&maker, uobject->context->device);
	uobject_add((__u64)uobject, what_direct(uobject), &maker, clear_for((__u64)uobject),
		    MONITOR_MADE);
	return 0;
}

SEC("fexit/uverbs_destroy_uobject")
int BPF_PROG(f_destroy, struct ib_uobject *uobject, int reason, void *attrs, int result)
{
	return on_destroy(uobject, result);
}

SEC("fentry/rdma_lookup_put_uobject")
int BPF_PROG(f_changed, struct ib_uobject *uobject, int mode)
{
	return on_changed(uobject, mode);
}

SEC("fexit/ib_create_qp_user")
int BPF_PROG(f_depths, void *device, void *pd, struct ib_qp_init_attr *attributes, void *udata,
	     void *uobject)
{
	return on_depths((__u64)uobject, attributes->cap.max_send_wr, attributes->cap.max_recv_wr);
}

SEC("fexit/ib_init_ucontext")
int BPF_PROG(f_context_made, void *attrs, int result)
{
	return on_context_made((__u64)attrs, result);
}

SEC("fentry/ib_rdmacg_uncharge")
int BPF_PROG(f_uncharged, void *charge, void *device, int type)
{
	return on_uncharged((__u64)charge, type);
}

SEC("fentry/uverbs_uobject_fd_release")
int BPF_PROG(f_released, void *inode, struct file *file)
{
	return on_released((__u64)file->private_data);
}

SEC("fexit/rdma_create_user_id")
int BPF_PROG(f_id_made, void *handler, void *context, int ps, int qp_type, void *id)
{
	return on_id_made((__u64)id);
}

SEC("fentry/ucma_event_handler")
int BPF_PROG(f_id_asked, void *id, void *event)
{
	return on_id_asked((__u64)id, (__u64)event);
}

SEC("fentry/_destroy_id")
int BPF_PROG(f_id_gone, void *id)
{
	return on_id_gone((__u64)id);
}

/* ---- attached by kprobes */

enum kept_hook { KEPT_destroy, KEPT_depths, KEPT_context_made };

static __always_inline __u64 kept_key(enum kept_hook hook)
{
	return (__u64)hook << 32 | (__u32)bpf_get_current_pid_tgid();
}

static __always_inline int keep(enum kept_hook hook, __u64 first, __u64 second)
{
	struct kept arguments = { first, second };
	__u64 key = kept_key(hook);

	bpf_map_update_elem(&kept, &key, &arguments, BPF_ANY);
	return 0;
}

static __always_inline int kept_take(enum kept_hook hook, struct kept *ret_arguments)
{
	__u64 key = kept_key(hook);
	struct kept *found = bpf_map_lookup_elem(&kept, &key);

	if (!found)
		return 0;
	*ret_arguments = *found;
	bpf_map_delete_elem(&kept, &key);
	return 1;
}

SEC("kprobe/rdma_alloc_commit_uobject")
int BPF_KPROBE(k_commit, struct ib_uobject *uobject)
{
	struct maker maker;

	maker_copied(&maker, BPF_CORE_READ(uobject, context, device));
	uobject_add((__u64)uobject, what_copied(uobject), &maker, clear_for((__u64)uobject),
		    MONITOR_MADE);
	return 0;
}

SEC("kprobe/uverbs_destroy_uobject")
int BPF_KPROBE(k_destroy_entry, void *uobject)
{
	return keep(KEPT_destroy, (__u64)uobject, 0);
}

SEC("kretprobe/uverbs_destroy_uobject")
int BPF_KRETPROBE(k_destroy, int result)
{
	struct kept arguments;

	return kept_take(KEPT_destroy, &arguments) ?
		       on_destroy((struct ib_uobject *)arguments.first, result) :
		       0;
}

SEC("kprobe/rdma_lookup_put_uobject")
int BPF_KPROBE(k_changed, struct ib_uobject *uobject, int mode)
{
	return on_changed(uobject, mode);
}

SEC("kprobe/ib_create_qp_user")
int BPF_KPROBE(k_depths_entry, void *device, void *pd, void *attributes, void *udata, void *uobject)
{
	return keep(KEPT_depths, (__u64)attributes, (__u64)uobject);
}

SEC("kretprobe/ib_create_qp_user")
int BPF_KRETPROBE(k_depths)
{
	const struct ib_qp_init_attr *attributes;
	struct kept arguments;

	if (!kept_take(KEPT_depths, &arguments))
		return 0;
	attributes = (const struct ib_qp_init_attr *)arguments.first;
	return on_depths(arguments.second, BPF_CORE_READ(attributes, cap.max_send_wr),
			 BPF_CORE_READ(attributes, cap.max_recv_wr));
}

SEC("kprobe/ib_init_ucontext")
int BPF_KPROBE(k_context_made_entry, void *attrs)
{
	return keep(KEPT_context_made, (__u64)attrs, 0);
}

SEC("kretprobe/ib_init_ucontext")
int BPF_KRETPROBE(k_context_made, int result)
{
	struct kept arguments;

	return kept_take(KEPT_context_made, &arguments) ? on_context_made(arguments.first, result) :
							  0;
}

SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(k_uncharged, void *charge, void *device, int type)
{
	if (type == CG_OBJECT) /* it is destroyed: k_destroy, or f_destroy, may be skipped */
		object_remove(uobject_of_charge((__u64)charge));
	return on_uncharged((__u64)charge, type);
}

SEC("kprobe/uverbs_uobject_fd_release")
int BPF_KPROBE(k_released, void *inode, struct file *file)
{
	return on_released((__u64)BPF_CORE_READ(file, private_data));
}

SEC("kretprobe/rdma_create_user_id")
int BPF_KRETPROBE(k_id_made, void *id)
{
	return on_id_made((__u64)id);
}

SEC("kprobe/ucma_event_handler")
int BPF_KPROBE(k_id_asked, void *id, void *event)
{
	return on_id_asked((__u64)id, (__u64)event);
}

SEC("kprobe/_destroy_id")
int BPF_KPROBE(k_id_gone, void *id)
{
	return on_id_gone((__u64)id);
}

/* ---- the end of a process: from now on its rows may go */

SEC("raw_tp/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct row_key key = {
		.pid = BPF_CORE_READ(leader, tgid),
		.start_ns = BPF_CORE_READ(leader, start_boottime),
	};

	for (__u32 nth = 0; nth < ROWS_OF_PROCESS; nth++) {
		struct monitor_row *row;
		__u32 *number;

		key.nth = nth;
		number = bpf_map_lookup_elem(&owners, &key);
		/* Threads end one by one; what counts is the last. */
		if (!number || (!nth && BPF_CORE_READ(task, signal, live.counter)))
			return 0;
		row = row_at(*number);
		if (!row)
			return 0;
		/* An addition is a full barrier: between the mark and the look at live, as
		 * between the last object's going and the look at the mark. One of us sees both. */
		ADD(row->exited, 1);
		row_may_go(row, *number);
	}
	return 0;
}

/* ---- what was there before */

/* Found in a list while its destruction may be under way: then that came too early for us. */
static __always_inline int found(__u64 address, int added)
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
	struct what what = what_copied(uobject);
	struct maker maker;

	/* One that is announced and in the list was committed, and that was missed. */
	if (!what.hardware || (known && known->counter != MONITOR_ANNOUNCED))
		return 0;
	maker_other(&maker, (const struct task_struct *)leader,
		    BPF_CORE_READ(uobject, context, device));
	return found(address, uobject_add(address, what, &maker, known, MONITOR_FOUND));
}

__noinline int seed_plain(__u64 address, __u64 leader, __u64 device, __u32 counter)
{
	struct maker maker;

	if (bpf_map_lookup_elem(&objects, &address))
		return 0;
	maker_other(&maker, (const struct task_struct *)leader, (const struct ib_device *)device);
	return found(address, plain_add(address, (__u16)counter, &maker, MONITOR_FOUND));
}

/* Where to go on in the list of a file: after the object that was last, if that still is
 * one, else at the beginning. */
static __always_inline __u64 seed_cursor(__u64 file)
{
	__u64 *last = bpf_map_lookup_elem(&cursors, &file), address;

	if (!last)
		return 0;
	address = *last;
	return bpf_map_lookup_elem(&objects, &address) ? address : 0;
}

static __always_inline void seed_stop(__u64 file, __u64 last)
{
	bpf_map_update_elem(&cursors, &file, &last, BPF_ANY);
	HEAD_ADD(seed_unfinished, 1);
}

static __always_inline int seed_uverbs(__u64 file, __u64 leader)
{
	__u64 context = word_at(file + offset_file_ucontext), first = file + offset_file_uobjects;
	__u64 at = first, uobject = seed_cursor(file);

	if (!context)
		return 0;
	if (uobject)
		at = uobject + bpf_core_field_offset(struct ib_uobject, list);
	else
		seed_plain(context + bpf_core_field_offset(struct ib_ucontext, cg_obj), leader,
			   (__u64)BPF_CORE_READ((struct ib_ucontext *)context, device), KIND_ctx);
	for (int i = 0; i < SEED_STEP; i++) {
		at = word_at(at);
		if (at == first || !at) {
			bpf_map_delete_elem(&cursors, &file);
			return 0;
		}
		uobject = at - bpf_core_field_offset(struct ib_uobject, list);
		seed_uobject(uobject, leader);
	}
	seed_stop(file, uobject);
	return 0;
}

static __always_inline int seed_ids(__u64 file, __u64 leader)
{
	__u64 first = file + offset_ucm_contexts, at = first, id = seed_cursor(file);

	if (id)
		at = word_at(id + offset_cm_id_context) + offset_ucm_list;
	for (int i = 0; i < SEED_STEP; i++) {
		at = word_at(at);
		if (at == first || !at) {
			bpf_map_delete_elem(&cursors, &file);
			return 0;
		}
		id = word_at(at - offset_ucm_list + offset_ucm_cm_id);
		if (id && id < (__u64)-4095)
			seed_plain(id, leader, 0, KIND_cm_id);
	}
	seed_stop(file, id);
	return 0;
}

SEC("iter/task_file")
int seed(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct monitor_head *now = the_head();
	__u64 operations, private, leader;

	if (!task || !file || !now)
		return 0;
	operations = (__u64)BPF_CORE_READ(file, f_op);
	private = (__u64)BPF_CORE_READ(file, private_data);
	if (!private)
		return 0;
	leader = (__u64)BPF_CORE_READ(task, group_leader);
	if (operations == now->uverbs_fops[0] || operations == now->uverbs_fops[1])
		return seed_uverbs(private, leader);
	return operations == now->ucm_fops ? seed_ids(private, leader) : 0;
}

/* Prints the addresses of objects that no longer are any. */
SEC("iter/bpf_map_elem")
int ghosts(struct bpf_iter__bpf_map_elem *ctx)
{
	struct monitor_object *object = ctx->value;
	__u64 *address = ctx->key, ghost;

	if (!object || !address)
		return 0;
	ghost = *address;
	if (object->counter != MONITOR_ANNOUNCED && !is_alive(ghost, object))
		bpf_seq_write(ctx->meta->seq, &ghost, sizeof(ghost));
	return 0;
}

/* Called by the loader with an address that ghosts has printed: takes out what is there, unless
 * that is an object after all, or one just being made, which is in no list yet. Whether it did. */
SEC("raw_tp")
int bury(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 address = ctx->args[0];
	struct monitor_object *object = bpf_map_lookup_elem(&objects, &address);

	if (!object || object->counter == MONITOR_ANNOUNCED || is_alive(address, object) ||
	    bpf_ktime_get_boot_ns() - object->made_ns < BEING_MADE_NS)
		return 0;
	object_remove(address);
	return 1;
}
