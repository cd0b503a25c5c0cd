/* SPDX-License-Identifier: MIT */
/*
 * The guard: refuses, in the kernel, what would take a tenant over a limit. A tenant is a
 * cgroup with everything below it; guard_rows.h is what is said about it.
 *
 * A command is looked at before anybody else reads it (LSM). If it makes an object, that is
 * reserved, or refused with EDQUOT. The reservation becomes a charge, kept by the object's
 * address, when the kernel commits the object; it is given back when the command ends
 * without one, and the charge when the object is destroyed.
 *
 * The command lies in memory that other threads can write. So when the kernel, which works
 * on a copy of its own, commits an object that was not reserved, that is charged nevertheless;
 * and who gets over a limit by a command that is proven to have changed is killed. The object
 * lives on if others have its file open, too. So that file is closed: nothing is carried out on
 * it any more, and who of the tenant has it is ended.
 *
 * Kernels that can be preempted skip a program of fentry or fexit now and then, and one of a kprobe
 * while a thread is preempted in a bpf() call, but none of LSM; so there kprobes do the same
 * (k_...). What is skipped all the same is put right from the objects themselves (stale.bpf.h), by
 * the thread's next command or before a refusal. A reservation of which that is not possible
 * "floats", that is, it counts until the loader has looked for what became of it.
 *
 * No table that is full lets anything pass. The place of a charge is reserved with the object,
 * and without one the object is refused. What cannot be refused and finds no place floats, too.
 */
#include "monitor/guard/charges.bpf.h"
#include "monitor/guard/found.bpf.h"

#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { MAY_WRITE = 2 }; /* of file_permission */

/* ---- before a command */

SEC("lsm.s/file_ioctl")
int BPF_PROG(g_ioctl, struct file *file, unsigned int request, unsigned long argument)
{
	return request == UVERBS_IOCTL ? look_at_ioctl(file, argument, 1) : 0;
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(g_ioctl_compat, struct file *file, unsigned int request, unsigned long argument)
{
	return request == UVERBS_IOCTL ? look_at_ioctl(file, argument, 0) : 0;
}

/* Asked at every read and write of every file: nothing but two comparisons for the others. */
SEC("lsm/file_permission")
int BPF_PROG(g_write, struct file *file, int mask)
{
	int result;

	if (!file_is_uverbs(file) || !(mask & MAY_WRITE))
		return 0;
	result = look_at_write(file);
	/* The kernel wants to be sure of what a security module answers. */
	return result < 0 && result >= -EDQUOT ? result : 0;
}

/* ---- while the kernel is at it */

SEC("fentry/rdma_alloc_commit_uobject")
int BPF_PROG(g_commit, struct ib_uobject *uobject, void *attrs)
{
	struct guard_head *head = guard_head_find();

	return guard_is_armed(head) ? charge_on_commit(head, made_direct(uobject), (__u64)attrs) :
				      0;
}

SEC("kprobe/rdma_alloc_commit_uobject")
int BPF_KPROBE(k_commit, struct ib_uobject *uobject, void *attrs)
{
	struct guard_head *head = guard_head_find();

	return guard_is_armed(head) ? charge_on_commit(head, made_copied(uobject), (__u64)attrs) :
				      0;
}

/* Beside k_commit: the kernel skips the two for different reasons. */
SEC("fentry/rdma_alloc_commit_uobject")
int BPF_PROG(g_commit_too, struct ib_uobject *uobject, void *attrs)
{
	struct guard_head *head = guard_head_find();

	return guard_is_armed(head) ?
		       charge_on_commit_too(head, made_direct(uobject), (__u64)attrs) :
		       0;
}

/* An object that could not be destroyed is still there. */
SEC("fexit/uverbs_destroy_uobject")
int BPF_PROG(g_destroy, struct ib_uobject *uobject, int reason, void *attrs, int result)
{
	if (result)
		return 0;
	command_note_freed((__u64)uobject);
	charge_drop((__u64)uobject);
	return 0;
}

/* The kernel takes a destroyed object off its cgroup: all but those that are files of their own. */
SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(k_destroy, void *charge, void *device, int type)
{
	__u64 address = uobject_of_charge((__u64)charge);

	if (type != CG_OBJECT)
		return 0;
	command_note_freed(address);
	charge_drop(address);
	return 0;
}

/* Such a file, a completion channel, is closed. */
SEC("kprobe/uverbs_uobject_fd_release")
int BPF_KPROBE(k_released, void *inode, struct file *file)
{
	charge_drop((__u64)BPF_CORE_READ(file, private_data));
	return 0;
}

SEC("fentry/rdma_lookup_put_uobject")
int BPF_PROG(g_changed, struct ib_uobject *uobject, int mode)
{
	struct guard_head *head = guard_head_find();

	return mode == LOOKUP_WRITE && guard_is_armed(head) ?
		       charge_on_change(head, made_direct(uobject)) :
		       0;
}

SEC("kprobe/rdma_lookup_put_uobject")
int BPF_KPROBE(k_changed, struct ib_uobject *uobject, int mode)
{
	struct guard_head *head = guard_head_find();

	return mode == LOOKUP_WRITE && guard_is_armed(head) ?
		       charge_on_change(head, made_copied(uobject)) :
		       0;
}

/* Nobody has it open any more. */
SEC("fentry/ib_uverbs_close")
int BPF_PROG(g_close, void *inode, struct file *file)
{
	struct guard_head *head = guard_head_find();
	__u64 address = (__u64)file->private_data;
	struct guard_closed *closed;

	if (!head || !*(volatile __u64 *)&head->closed)
		return 0;
	closed = bpf_map_lookup_elem(&guard_closed, &address);
	if (closed)
		closed_forget(head, address, closed->slot);
	return 0;
}

/* ---- when it has ended */

SEC("fexit/ib_uverbs_ioctl")
int BPF_PROG(g_ioctl_end, struct file *file, unsigned int request, unsigned long argument,
	     long result)
{
	return command_ended(result);
}

SEC("fexit/ib_uverbs_write")
int BPF_PROG(g_write_end, struct file *file, const char *buffer, unsigned long count, void *at,
	     long result)
{
	return command_ended(result);
}

SEC("kretprobe.multi/ib_uverbs_ioctl")
int BPF_KRETPROBE(k_ioctl_end, long result)
{
	return command_ended(result);
}

SEC("kretprobe.multi/ib_uverbs_write")
int BPF_KRETPROBE(k_write_end, long result)
{
	return command_ended(result);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(g_exit, struct task_struct *task)
{
	command_forget((__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* A thread that is not the leader takes over the leader's number by exec: nobody ends by the
 * number that it had. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(g_exec, struct task_struct *task, int before)
{
	if ((__u32)before != (__u32)bpf_get_current_pid_tgid())
		command_forget((__u32)before);
	return 0;
}

/* ---- what was there before, and what was missed */

/* Over the objects of the accounting: what no tenant is charged yet, and what is charged too
 * much or too little. Prints the cgroups of which it does not know whose they are: the loader
 * finds out, and asks again. Prints 0 for an object that may just be being made: g_commit
 * charges it, or the next pass does. */
SEC("iter/bpf_map_elem")
int g_adopt(struct bpf_iter__bpf_map_elem *ctx)
{
	struct monitor_object *object = ctx->value;
	struct guard_head *head = guard_head_find();
	struct guard_charge charge = {}, *known;
	struct guard_tenancy *tenancy;
	__u64 *key = ctx->key, address, cgroup;
	long failed;

	__u64 making = 0;

	if (!object || !key || !guard_is_armed(head) || object->counter >= KIND_COUNT ||
	    object->counter == KIND_ctx || object->counter == KIND_cm_id)
		return 0;
	address = *key;
	known = bpf_map_lookup_elem(&guard_charges, &address);
	if (known && known->kind != object->counter) {
		charge_drop(address); /* another object was there, and ended unseen */
		known = NULL;
	}
	if (known) {
		if (object->counter == KIND_mr && object->size && known->bytes != object->size) {
			count_put(known->slot, KIND_mr_bytes, (__s64)(object->size - known->bytes));
			known->bytes = object->size;
		}
		return 0;
	}
	cgroup = object->cgroup;
	tenancy = bpf_map_lookup_elem(&guard_tenancies, &cgroup);
	if (!tenancy || tenancy->epoch != head->epoch || tenancy->ownerless)
		bpf_seq_write(ctx->meta->seq, &cgroup, sizeof(cgroup));
	if (!tenancy || tenancy->epoch != head->epoch || !tenancy->slot ||
	    !is_alive(address, object))
		return 0;
	if (bpf_ktime_get_boot_ns() - object->made_ns < BEING_MADE_NS) {
		bpf_seq_write(ctx->meta->seq, &making, sizeof(making));
		return 0;
	}
	charge.file = object->file;
	charge.slot = tenancy->slot;
	charge.kind = object->counter;
	charge.bytes = charge.kind == KIND_mr ? object->size : 0;
	found_put(charge.slot, charge.kind, charge.bytes);
	failed = bpf_map_update_elem(&guard_charges, &address, &charge, BPF_NOEXIST);
	if (failed == -EEXIST)
		count_give_back(charge.slot, charge.kind, charge.bytes);
	else if (failed)
		count_set_afloat(charge.slot, charge.kind, charge.bytes);
	else if (!bpf_map_lookup_elem(&objects, &address))
		charge_drop(address);
	return 0;
}

/* Over the open files of all processes: prints each closed one (struct guard_holder). */
SEC("iter/task_file")
int g_holders(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct guard_head *head = guard_head_find();
	struct guard_holder holder = { .fd = ctx->fd };
	struct guard_closed *closed;

	if (!task || !file || !head || !file_is_uverbs(file))
		return 0;
	holder.file = (__u64)file->private_data;
	closed = closed_find(head, holder.file);
	if (!closed)
		return 0;
	holder.process = (__u32)task->tgid;
	holder.slot = closed->slot;
	bpf_seq_write(ctx->meta->seq, &holder, sizeof(holder));
	return 0;
}

/* Over the charges: prints the objects over a limit (struct guard_excess). One that ends just
 * now has a file or a handle that the loader does not find. */
SEC("iter/bpf_map_elem")
int g_excess(struct bpf_iter__bpf_map_elem *ctx)
{
	struct guard_charge *charge = ctx->value;
	struct guard_excess excess = {};
	struct ib_uobject *uobject;
	__u64 *key = ctx->key;

	if (!key || !charge || !charge->excess)
		return 0;
	uobject = (struct ib_uobject *)*key;
	excess.file = uobject_file(uobject);
	excess.type = type_number(BPF_CORE_READ(uobject, uapi_object));
	excess.handle = (__u32)BPF_CORE_READ(uobject, id);
	excess.driver = BPF_CORE_READ(uobject, context, device, ops.driver_id);
	bpf_seq_write(ctx->meta->seq, &excess, sizeof(excess));
	return 0;
}

/* Over the charges: drops those that the accounting has no object for, and whose object is no more:
 * it may have missed one that is. Here and not by the loader: a command that comes between the
 * removal of a charge and the lower count is refused, and for the loader these are two system
 * calls. */
SEC("iter/bpf_map_elem")
int g_strays(struct bpf_iter__bpf_map_elem *ctx)
{
	struct guard_charge *charge = ctx->value;
	__u64 *key = ctx->key, address;

	if (!key || !charge)
		return 0;
	address = *key;
	if (!bpf_map_lookup_elem(&objects, &address) && charge_is_stale(address, charge))
		charge_drop_stale(address, *charge);
	return 0;
}
