/* SPDX-License-Identifier: MIT */
/*
 * void stack_call(void (*function)(void *), void *argument, void *top): calls the function on
 * another stack, whose end is top. The frame stays readable for debuggers and profilers.
 */
#if !defined(__x86_64__)
#error "stack.S is written for x86-64"
#endif

	.text
	.globl	stack_call
	.hidden	stack_call
	.type	stack_call, @function
stack_call:
	.cfi_startproc
	endbr64
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
	ret
	.cfi_endproc
	.size	stack_call, . - stack_call

	.section .note.GNU-stack, "", @progbits
