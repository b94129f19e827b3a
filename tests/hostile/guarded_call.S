/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guarded_call.S - calls, and interruptions, with a known value in all that must survive
 *
 *   void *call_guarded(void *function, size_t one, size_t other, uint64_t *changed)
 *   uint64_t spin_guarded(const int *counter)
 */
	.macro keep register
	pushq \register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endm
	.macro unkeep register
	popq \register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endm
	.macro check bit, value, register
	cmpq \value, \register
	je 1f
	orq $(1 << \bit), %rcx
1:
	.endm

	.text
	.globl call_guarded
	.type call_guarded, @function
call_guarded:
	.cfi_startproc
	keep %rbx
	keep %rbp
	keep %r12
	keep %r13
	keep %r14
	keep %r15
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	subq $64, %rsp
	.cfi_adjust_cfa_offset 64
	/* Words of the caller's frame that the call has no business with. */
	movq $0x1111, (%rsp)
	movq $0x2222, 8(%rsp)
	movq $0x3333, 56(%rsp)
	movq %rdi, %rax
	movq %rsi, %rdi
	movq %rdx, %rsi
	movq $0x0b0b, %rbx
	movq %rsp, %rbp
	movq $0x1212, %r12
	movq $0x1313, %r13
	movq $0x1414, %r14
	movq $0x1515, %r15
	call *%rax
	xorl %ecx, %ecx
	check 0, $0x0b0b, %rbx
	check 1, %rsp, %rbp
	check 2, $0x1212, %r12
	check 3, $0x1313, %r13
	check 4, $0x1414, %r14
	check 5, $0x1515, %r15
	check 6, $0x1111, (%rsp)
	check 7, $0x2222, 8(%rsp)
	check 8, $0x3333, 56(%rsp)
	pushfq
	popq %rdx
	testl $0x400, %edx
	jz 1f
	orq $(1 << 9), %rcx
1:
	addq $64, %rsp
	.cfi_adjust_cfa_offset -64
	popq %rdx
	.cfi_adjust_cfa_offset -8
	orq %rcx, (%rdx)
	unkeep %r15
	unkeep %r14
	unkeep %r13
	unkeep %r12
	unkeep %rbp
	unkeep %rbx
	ret
	.cfi_endproc
	.size call_guarded, . - call_guarded

	/* Until the counter moves; a handler comes at some instruction of the loop. */
	.globl spin_guarded
	.type spin_guarded, @function
spin_guarded:
	.cfi_startproc
	movl (%rdi), %esi
	movq $0x0808, %r8
	movq $0x0909, %r9
	movq $0x1010, %r10
	movq $0x1111, %r11
	movq $0x6666, -64(%rsp)
	movq $0x7777, -128(%rsp)
	pcmpeqd %xmm0, %xmm0
	movdqa %xmm0, %xmm15
	std
2:
	cmpl (%rdi), %esi
	je 2b
	pushfq
	popq %rdx
	cld
	xorl %ecx, %ecx
	testl $0x400, %edx
	jnz 1f
	orq $(1 << 9), %rcx
1:
	check 0, $0x0808, %r8
	check 1, $0x0909, %r9
	check 2, $0x1010, %r10
	check 3, $0x1111, %r11
	check 5, $0x6666, -64(%rsp)
	check 6, $0x7777, -128(%rsp)
	pcmpeqd %xmm1, %xmm1
	pcmpeqd %xmm1, %xmm0
	pmovmskb %xmm0, %eax
	check 7, $0xffff, %rax
	pcmpeqd %xmm1, %xmm15
	pmovmskb %xmm15, %eax
	check 8, $0xffff, %rax
	movq %rcx, %rax
	ret
	.cfi_endproc
	.size spin_guarded, . - spin_guarded
	.section .note.GNU-stack, "", @progbits
