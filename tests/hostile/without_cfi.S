/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * without_cfi.S - functions that nothing is known of
 *
 *   void bare_with_frame(void (*call)(void))              keeps a frame pointer
 *   void *bare_without_frame(void (*call)(void), void *)  has the pointer in rbp, and also
 *                                                         where return addresses could be
 */
	.text
	.globl bare_with_frame
	.type bare_with_frame, @function
bare_with_frame:
	pushq %rbp
	movq %rsp, %rbp
	subq $48, %rsp
	call *%rdi
	leave
	ret
	.size bare_with_frame, . - bare_with_frame

	.globl bare_without_frame
	.type bare_without_frame, @function
bare_without_frame:
	pushq %rbp
	pushq %rbx
	movq %rsi, %rbp
	subq $2008, %rsp
	movq %rsi, (%rsp)
	movq %rsi, 8(%rsp)
	call *%rdi
	movq %rbp, %rax
	addq $2008, %rsp
	popq %rbx
	popq %rbp
	ret
	.size bare_without_frame, . - bare_without_frame
	.section .note.GNU-stack, "", @progbits
