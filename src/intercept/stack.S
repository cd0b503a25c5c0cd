/* SPDX-License-Identifier: MIT */
/*
 * void stack_call(void (*function)(void *), void *argument, void *top): calls the function on
 * another stack, whose end is top. The frame stays readable for debuggers and profilers.
 */
#include "intercept/machine.h"

	.text
	.globl	stack_call
	.hidden	stack_call
	.type	stack_call, %function
stack_call:
	.cfi_startproc
	LANDING
#if defined(__x86_64__)
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	%rdx, %rsp
	movq	%rdi, %rax
	movq	%rsi, %rdi
	call	*%rax
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
#elif defined(__aarch64__)
	SIGN
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	.cfi_def_cfa_register x29
	mov	sp, x2
	mov	x9, x0
	mov	x0, x1
	blr	x9
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	CHECK_SIGN
#endif
	ret
	.cfi_endproc
	.size	stack_call, . - stack_call

	OBJECT_NOTES
