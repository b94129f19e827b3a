/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * entry.S - see entry.h; x86-64
 *
 * Invariants
 *   - No GOT, PLT or TLS: an ifunc resolver may call these before the shim is relocated.
 *     All data is hidden and RIP-relative.
 *   - What lies between a window's start and its caller's frame is six pushed registers and
 *     the return address, nothing of the shim's.
 *   - The stack pointer is as far from a multiple of 16 when C is called as it was when the
 *     stub was: the C side uses general registers only and bears any, the real function
 *     gets what its caller gave.
 *   - Each instruction has call-frame information: an exception thrown by a real operator
 *     new, a debugger and memtrack's own unwinder pass through.
 */
#include "wire/functions.h"

	/* 1 where the C library of this build has it, see configure.ac. */
#ifndef HAVE_CFREE
	.set	absent_cfree, 1
#endif
#ifndef HAVE_FREE_SIZED
	.set	absent_free_sized, 1
#endif
#ifndef HAVE_FREE_ALIGNED_SIZED
	.set	absent_free_aligned_sized, 1
#endif

	/* What needs no window is served by a jump. */
	.set	jumps_free, 1
	.set	jumps_delete, 1

	/* reallocarray of the C library forwards to realloc, and asks like an operator. */
	.set	asks_reallocarray, 1
	.set	asks_new, 1
	.set	asks_delete, 1

	.macro	mt_push register
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\register, 0
	.endm

	.macro	mt_pop register
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\register
	.endm

	/* Calls the C side with the window's start; the caller's arguments are in place. */
	.macro	mt_call number, handler
	mt_push	r15
	mt_push	r14
	mt_push	r13
	mt_push	r12
	mt_push	rbp
	mt_push	rbx
	movq	%rsp, %rcx
	movl	$\number, %r8d
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	mt_serve_\handler
	/* The C side kept the registers: there is nothing to pop. */
	addq	$56, %rsp
	.cfi_adjust_cfa_offset -56
	.cfi_restore %r15
	.cfi_restore %r14
	.cfi_restore %r13
	.cfi_restore %r12
	.cfi_restore %rbp
	.cfi_restore %rbx
	ret
	.endm

	/* Asks where to jump, the caller's arguments kept: rax, or 0. */
	.macro	mt_ask number
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movl	$\number, %edi
	movq	24(%rsp), %rsi
	call	mt_pass_target
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.endm

	.macro	mt_stub number, symbol, handler
	.ifdef	absent_\symbol
	.exitm
	.endif
	.globl	\symbol
	.type	\symbol, @function
	.p2align 4
	.globl	mt_entry_\symbol
	.hidden	mt_entry_\symbol
\symbol:
mt_entry_\symbol:
	.cfi_startproc
	endbr64
	.ifdef	asks_\handler
	movq	mt_pass + 8 * \number(%rip), %rax
	testq	%rax, %rax
	jne	1f
	mt_ask	\number
	testq	%rax, %rax
	je	2f
1:	jmp	*%rax
2:
	.else
	cmpb	$0, mt_on(%rip)
	je	1f
	.endif
	.ifdef	jumps_\handler
	movl	$\number, %ecx
	jmp	mt_serve_free
	.else
	mt_call	\number, \handler
	.endif
	.ifndef	asks_\handler
1:	jmp	*mt_real + 8 * \number(%rip)
	.endif
	.cfi_endproc
	.size	\symbol, . - \symbol
	.endm

#define STUB(number, symbol, handler) mt_stub number, symbol, handler;

	.text
	MT_FUNCTIONS(STUB)

	.section .note.GNU-stack, "", @progbits

	/* IBT and SHSTK: without the mark the whole process loses both. */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
