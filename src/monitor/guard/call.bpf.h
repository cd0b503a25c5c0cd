/* SPDX-License-Identifier: MIT */
/*
 * The system call that the current thread is in, as its registers have it: the one thing of the
 * kernel's programs that differs between processors.
 */
#ifndef MONITOR_GUARD_CALL_BPF_H
#define MONITOR_GUARD_CALL_BPF_H

#include "monitor/kernel/structures.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A write() or writev(): its buffer (of writev: its vector) and how many. */
struct write_call {
	int narrow; /* by a program of 32 bits */
	int is_write, is_writev;
	__u64 buffer, count;
};

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs {
	__u64 regs[31];
	int syscallno;
};
#pragma clang attribute pop

static __always_inline struct write_call write_call_current(void)
{
	enum { WRITE = 64, WRITEV = 66, WRITE_32 = 4, WRITEV_32 = 146, TIF_32BIT = 22 };
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int narrow = task->thread_info.flags >> TIF_32BIT & 1, number = regs->syscallno;

	return (struct write_call){
		.narrow = narrow,
		.is_write = number == (narrow ? WRITE_32 : WRITE),
		.is_writev = number == (narrow ? WRITEV_32 : WRITEV),
		.buffer = regs->regs[1],
		.count = regs->regs[2],
	};
}

#else

#include <linux/ptrace.h>

static __always_inline struct write_call write_call_current(void)
{
	enum { WRITE = 1, WRITEV = 20, WRITE_32 = 4, WRITEV_32 = 146, TS_COMPAT = 2 };
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int narrow = task->thread_info.status & TS_COMPAT;
	__u64 number = regs->orig_rax;

	return (struct write_call){
		.narrow = narrow,
		.is_write = number == (narrow ? WRITE_32 : WRITE),
		.is_writev = number == (narrow ? WRITEV_32 : WRITEV),
		.buffer = narrow ? (__u32)regs->rcx : regs->rsi,
		.count = narrow ? (__u32)regs->rdx : regs->rdx,
	};
}

#endif

#endif
