/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym as the application sees them. dl_decide answers for the
 * names that we stand in for; for all others, and whenever the caller's
 * identity matters (RTLD_NEXT, RTLD_DEFAULT), we jump to the next dlsym in
 * line, which then sees the application as its caller and not us.
 */
#if !defined(__x86_64__)
#error "dlhooks.S is written for x86-64; other machines need their own tail jump"
#endif

	.text

	.macro hook name, next
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	.ifc	\name, hook_dlsym
	xorl	%edx, %edx		/* no version */
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
	ret
1:	jmp	*\next(%rip)
	.cfi_endproc
	.size	\name, . - \name
	.endm

	hook	hook_dlsym, dl_next_dlsym
	hook	hook_dlvsym, dl_next_dlvsym

	/* The two nodes under which glibc has had them, old and new. */
	.macro export name, as, versioned
	.globl	\name\()_\as
	.type	\name\()_\as, @function
	.set	\name\()_\as, \name
	.symver	\name\()_\as, \versioned, remove
	.endm

	export	hook_dlsym, old, dlsym@GLIBC_2.2.5
	export	hook_dlsym, new, dlsym@@GLIBC_2.34
	export	hook_dlvsym, old, dlvsym@GLIBC_2.2.5
	export	hook_dlvsym, new, dlvsym@@GLIBC_2.34

	.section .note.GNU-stack, "", @progbits
