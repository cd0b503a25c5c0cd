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
#include "monitor/accounting/hooks.bpf.h"
#include "monitor/accounting/seed.bpf.h"

#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- attached by fentry and fexit */

SEC("fentry/rdma_alloc_commit_uobject")
int BPF_PROG(f_commit, struct ib_uobject *uobject)
{
	struct maker maker;

	maker_direct(&maker, uobject->context->device);
	uobject_add((__u64)uobject, uobject_facts_direct(uobject), &maker,
		    object_clear_stale((__u64)uobject), MONITOR_MADE);
	return 0;
}

SEC("fexit/uverbs_destroy_uobject")
int BPF_PROG(f_destroy, struct ib_uobject *uobject, int reason, void *attrs, int result)
{
	return hook_destroy(uobject, result);
}

SEC("fentry/rdma_lookup_put_uobject")
int BPF_PROG(f_changed, struct ib_uobject *uobject, int mode)
{
	return hook_changed(uobject, mode);
}

SEC("fexit/ib_create_qp_user")
int BPF_PROG(f_depths, void *device, void *pd, struct ib_qp_init_attr *attributes, void *udata,
	     void *uobject)
{
	return hook_depths((__u64)uobject, attributes->cap.max_send_wr,
			   attributes->cap.max_recv_wr);
}

SEC("fexit/ib_init_ucontext")
int BPF_PROG(f_context_made, void *attrs, int result)
{
	return hook_context_made((__u64)attrs, result);
}

SEC("fentry/ib_rdmacg_uncharge")
int BPF_PROG(f_uncharged, void *charge, void *device, int type)
{
	return hook_uncharged((__u64)charge, type);
}

SEC("fentry/uverbs_uobject_fd_release")
int BPF_PROG(f_released, void *inode, struct file *file)
{
	return hook_released((__u64)file->private_data);
}

SEC("fexit/rdma_create_user_id")
int BPF_PROG(f_id_made, void *handler, void *context, int ps, int qp_type, void *id)
{
	return hook_id_made((__u64)id);
}

SEC("fentry/ucma_event_handler")
int BPF_PROG(f_id_asked, void *id, void *event)
{
	return hook_id_asked((__u64)id, (__u64)event);
}

SEC("fentry/_destroy_id")
int BPF_PROG(f_id_gone, void *id)
{
	return hook_id_gone((__u64)id);
}

/* ---- attached by kprobes */

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

enum kept_hook { KEPT_destroy, KEPT_depths, KEPT_context_made };

static __always_inline __u64 kept_key(enum kept_hook hook)
{
	return (__u64)hook << 32 | (__u32)bpf_get_current_pid_tgid();
}

static __always_inline int kept_put(enum kept_hook hook, __u64 first, __u64 second)
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
	uobject_add((__u64)uobject, uobject_facts_copied(uobject), &maker,
		    object_clear_stale((__u64)uobject), MONITOR_MADE);
	return 0;
}

SEC("kprobe/uverbs_destroy_uobject")
int BPF_KPROBE(k_destroy_entry, void *uobject)
{
	return kept_put(KEPT_destroy, (__u64)uobject, 0);
}

SEC("kretprobe/uverbs_destroy_uobject")
int BPF_KRETPROBE(k_destroy, int result)
{
	struct kept arguments;

	return kept_take(KEPT_destroy, &arguments) ?
		       hook_destroy((struct ib_uobject *)arguments.first, result) :
		       0;
}

SEC("kprobe/rdma_lookup_put_uobject")
int BPF_KPROBE(k_changed, struct ib_uobject *uobject, int mode)
{
	return hook_changed(uobject, mode);
}

SEC("kprobe/ib_create_qp_user")
int BPF_KPROBE(k_depths_entry, void *device, void *pd, void *attributes, void *udata, void *uobject)
{
	return kept_put(KEPT_depths, (__u64)attributes, (__u64)uobject);
}

SEC("kretprobe/ib_create_qp_user")
int BPF_KRETPROBE(k_depths)
{
	const struct ib_qp_init_attr *attributes;
	struct kept arguments;

	if (!kept_take(KEPT_depths, &arguments))
		return 0;
	attributes = (const struct ib_qp_init_attr *)arguments.first;
	return hook_depths(arguments.second, BPF_CORE_READ(attributes, cap.max_send_wr),
			   BPF_CORE_READ(attributes, cap.max_recv_wr));
}

SEC("kprobe/ib_init_ucontext")
int BPF_KPROBE(k_context_made_entry, void *attrs)
{
	return kept_put(KEPT_context_made, (__u64)attrs, 0);
}

SEC("kretprobe/ib_init_ucontext")
int BPF_KRETPROBE(k_context_made, int result)
{
	struct kept arguments;

	return kept_take(KEPT_context_made, &arguments) ?
		       hook_context_made(arguments.first, result) :
		       0;
}

SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(k_uncharged, void *charge, void *device, int type)
{
	if (type == CG_OBJECT) /* it is destroyed: k_destroy, or f_destroy, may be skipped */
		object_remove(uobject_of_charge((__u64)charge));
	return hook_uncharged((__u64)charge, type);
}

SEC("kprobe/uverbs_uobject_fd_release")
int BPF_KPROBE(k_released, void *inode, struct file *file)
{
	return hook_released((__u64)BPF_CORE_READ(file, private_data));
}

SEC("kretprobe/rdma_create_user_id")
int BPF_KRETPROBE(k_id_made, void *id)
{
	return hook_id_made((__u64)id);
}

SEC("kprobe/ucma_event_handler")
int BPF_KPROBE(k_id_asked, void *id, void *event)
{
	return hook_id_asked((__u64)id, (__u64)event);
}

SEC("kprobe/_destroy_id")
int BPF_KPROBE(k_id_gone, void *id)
{
	return hook_id_gone((__u64)id);
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

SEC("iter/task_file")
int seed(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct monitor_head *now = head_find();
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
int stale_list(struct bpf_iter__bpf_map_elem *ctx)
{
	struct monitor_object *object = ctx->value;
	__u64 *key = ctx->key, address;

	if (!object || !key)
		return 0;
	address = *key;
	if (object->counter != MONITOR_ANNOUNCED && !is_alive(address, object))
		bpf_seq_write(ctx->meta->seq, &address, sizeof(address));
	return 0;
}

/* Called by the loader with an address that stale_list has printed: takes out what is there, unless
 * that is an object after all, or one just being made, which is in no list yet. Whether it did. */
SEC("raw_tp")
int stale_remove(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 address = ctx->args[0];
	struct monitor_object *object = bpf_map_lookup_elem(&objects, &address);

	if (!object || object->counter == MONITOR_ANNOUNCED || is_alive(address, object) ||
	    bpf_ktime_get_boot_ns() - object->made_ns < BEING_MADE_NS)
		return 0;
	object_remove(address);
	return 1;
}
