/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym as the application sees them. dl_decide answers for the
 * names that we stand in for; for all others, and whenever the caller's
 * identity matters (RTLD_NEXT, RTLD_DEFAULT), we jump to the next dlsym in
 * line, which then sees the application as its caller and not us.
 */
#include "intercept/machine.h"

	.text

	/* begin: keeps the arguments and asks dl_decide. answer: returns what it said. go_on: with
	 * the arguments and the frame of the caller again, jumps to the next in line. */
#if defined(__x86_64__)

	.macro begin has_version
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	.if	!\has_version
	xorl	%edx, %edx
	.endif
	call	dl_decide
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	cmpq	$-1, %rax		/* DL_GO_ON */
	je	1f
	.endm

	.macro go_on next
	jmp	*\next(%rip)
	.endm

#elif defined(__aarch64__)

	.macro begin has_version
	SIGN
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	.if	!\has_version
	mov	x2, xzr
	.endif
	bl	dl_decide
	mov	x9, x0
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	CHECK_SIGN
	cmn	x9, #1			/* DL_GO_ON */
	b.eq	1f
	mov	x0, x9
	.endm

	.macro go_on next		/* by x16, which may jump to the landing of a call */
	adrp	x16, \next
	ldr	x16, [x16, :lo12:\next]
	br	x16
	.endm

#endif

	.macro hook name, next, has_version
	.globl	\name
	.hidden	\name
	.type	\name, %function
\name:
	.cfi_startproc
	LANDING
	begin	\has_version
	ret
1:	go_on	\next
	.cfi_endproc
	.size	\name, . - \name
	.endm

	hook	hook_dlsym, dl_next_dlsym, 0
	hook	hook_dlvsym, dl_next_dlvsym, 1

	/* The two nodes under which glibc has had them, old and new. */
#define EXPORT(hook, as, versioned)                                                                \
	.globl	hook##_##as;                                                                       \
	.type	hook##_##as, %function;                                                            \
	.set	hook##_##as, hook;                                                                 \
	.symver	hook##_##as, versioned, remove

	EXPORT(hook_dlsym, old, dlsym@LIBC_OLDEST)
	EXPORT(hook_dlsym, new, dlsym@@GLIBC_2.34)
	EXPORT(hook_dlvsym, old, dlvsym@LIBC_OLDEST)
	EXPORT(hook_dlvsym, new, dlvsym@@GLIBC_2.34)

	OBJECT_NOTES
