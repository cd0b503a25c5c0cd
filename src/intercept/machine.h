/* SPDX-License-Identifier: MIT */
/*
 * What differs between processors in the library's assembly and is short: the mark of a place to
 * which an indirect jump may lead, a jump, and what an object file says of itself. Where a frame differs, the file that has it has a text for each processor.
 */
#ifndef INTERCEPT_MACHINE_H
#define INTERCEPT_MACHINE_H

#if defined(__x86_64__)
#define LANDING endbr64
#define JUMP	jmp
#define OBJECT_NOTES .section .note.GNU-stack, "", @progbits
#elif defined(__aarch64__)
#define LANDING hint 34 /* bti c; older assemblers do not know that name */
#define JUMP	b
/* The second note: each indirect jump into this file finds a LANDING, return addresses are signed. */
#define OBJECT_NOTES                                                                               \
	.section .note.GNU-stack, "", %progbits;                                                   \
	.section .note.gnu.property, "a";                                                          \
	.balign 8;                                                                                 \
	.word 4, 16, 5; /* sizes of name and data, NT_GNU_PROPERTY_TYPE_0 */                       \
	.asciz "GNU";                                                                              \
	.word 0xc0000000, 4, 3, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI and PAC */
/* The frame of a function that calls another: the return address is signed, and checked again. */
#define SIGN	   hint 25; .cfi_negate_ra_state /* paciasp */
#define CHECK_SIGN hint 29; .cfi_negate_ra_state /* autiasp */
#else
#error "the library's assembly is written for x86-64 and aarch64"
#endif

#endif
