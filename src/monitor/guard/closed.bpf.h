/* SPDX-License-Identifier: MIT */
/*
 * Closed files: device files on which a process changed a command after the check, so that
 * its tenant exceeded a limit. The guard refuses every further command on them.
 */
#ifndef MONITOR_GUARD_CLOSED_BPF_H
#define MONITOR_GUARD_CLOSED_BPF_H

#include "monitor/guard/counts.bpf.h"

enum { CAP_SYS_ADMIN = 21 };

/* A number, not a pointer: newer kernels know what it points to, and forbid to compare it. */
static __always_inline __u64 uobject_file(const struct ib_uobject *uobject)
{
	return (__u64)BPF_CORE_READ(uobject, ufile);
}

/* Whoever deletes the key has the rest to do. */
static __always_inline void closed_forget(struct guard_head *head, __u64 file, __u32 slot)
{
	struct guard_counts *counts = guard_counts_find(slot);

	if (bpf_map_delete_elem(&guard_closed, &file))
		return;
	ADD(head->closed, -1);
	if (counts)
		ADD(counts->closed, -1);
}

/* Why a file is closed; NULL: it is not. */
static __always_inline struct guard_closed *closed_find(struct guard_head *head, __u64 file)
{
	struct guard_closed *closed;

	if (!*(volatile __u64 *)&head->closed)
		return NULL;
	closed = bpf_map_lookup_elem(&guard_closed, &file);
	if (!closed || closed->context == word_at(file + offsets.file_ucontext))
		return closed;
	closed_forget(head, file, closed->slot); /* an earlier file's, whose end was not seen */
	return NULL;
}

static __always_inline void closed_add(__u64 file, __u32 slot, __u32 kind)
{
	struct guard_closed closed = { .context = word_at(file + offsets.file_ucontext),
				       .slot = slot,
				       .kind = kind };
	struct guard_head *head = guard_head_find();
	struct guard_counts *counts = guard_counts_find(slot);

	if (!head || !counts || closed_find(head, file))
		return;
	/* Before it is there, so that nobody passes it over. */
	ADD(head->closed, 1);
	ADD(counts->closed, 1);
	if (!bpf_map_update_elem(&guard_closed, &file, &closed, BPF_NOEXIST))
		return;
	ADD(head->closed, -1);
	ADD(counts->closed, -1);
	/* Another thread has closed it; or there is no room, and the tenant is shut for good. */
	if (!bpf_map_lookup_elem(&guard_closed, &file))
		ADD(counts->closed, GUARD_SHUT);
}

/* What cannot be refused any more is charged all the same. Proven: by a command that changed, on
 * this file; else 0. Whether it is over the limit, and that was proven. */
static __always_inline int charge_forced(__u32 slot, __u32 kind, __u64 amount, __u64 proven)
{
	struct guard_counts *counts = guard_counts_find(slot);
	struct lack lack = {};

	barrier_var(kind); /* as in count_take */
	if (!counts || kind >= KIND_COUNT || !amount ||
	    !count_take(slot, kind, amount, &lack))
		return 0;
	count_put(slot, kind, (__s64)amount);
	if (proven) {
		ADD(counts->killed, 1);
		bpf_send_signal(SIGKILL);
		closed_add(proven, slot, kind);
	} else {
		ADD(counts->overrun[kind], 1);
	}
	log_note(proven ? GUARD_KILLED : GUARD_OVERRUN, slot, kind, amount, lack.used,
		 lack.limit);
	return proven != 0;
}

/* By which uverbs' files are known; the loader writes them. They are constants of the programs,
 * since one of these runs at every read and write of the host. */
const volatile __u64 uverbs_fops[2] = {};

static __always_inline int file_is_uverbs(const struct file *file)
{
	__u64 operations = (__u64)file->f_op;

	return operations == uverbs_fops[0] || operations == uverbs_fops[1];
}

/* A command on a file that is closed, or of a tenant that is shut: whatever it is, it could be
 * another one by the time that the kernel reads it. Who is of the tenant that is to blame is
 * killed, unless it seems to tidy up; to others the file was passed, and they are refused only. */
static __noinline int closed_refuse(__u32 slot, __u32 blamed, __u32 kind, int destroys)
{
	struct guard_counts *counts = guard_counts_find(blamed);
	int killed = slot == blamed && !destroys && kind < KIND_COUNT;

	if (kind >= KIND_COUNT)
		kind = KIND_ctx;
	if (killed) {
		bpf_send_signal(SIGKILL);
		if (counts)
			ADD(counts->killed, 1);
	} else if (counts) {
		ADD(counts->refused[kind], 1);
	}
	log_note(killed ? GUARD_CLOSED_KILLED : GUARD_CLOSED_REFUSED, blamed, kind, 1, 0, 0);
	return -EDQUOT;
}

/* The host's administrator: rdma_monitor, which destroys objects on closed files. */
static __noinline int process_is_administrator(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	const struct cred *cred = BPF_CORE_READ(task, cred);
	__u32 capabilities = 0;

	bpf_probe_read_kernel(&capabilities, sizeof(capabilities),
			      (const char *)cred +
				      bpf_core_field_offset(struct cred, cap_effective));
	return capabilities >> CAP_SYS_ADMIN & 1 && !BPF_CORE_READ(cred, user_ns, level);
}

/* Nothing may be done on this file, or by this tenant; *ret_closed says why. */
static __always_inline int closed_applies(struct guard_head *head, const struct file *file,
					  __u32 slot, struct guard_closed *ret_closed)
{
	struct guard_closed *closed = closed_find(head, (__u64)file->private_data);
	struct guard_counts *counts;

	if (closed) {
		*ret_closed = *closed;
		if (slot || !process_is_administrator())
			return 1;
		ret_closed->slot = GUARD_TENANTS;
		return 0;
	}
	counts = slot ? guard_counts_find(slot) : NULL;
	if (!counts || *(volatile __u64 *)&counts->closed < GUARD_SHUT)
		return 0;
	ret_closed->slot = slot;
	ret_closed->kind = KIND_COUNT; /* the file is another one: no reason to kill */
	return 1;
}

#endif
