/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * compare.S - words and groups that differ, and copies, with vectors; compare.h; x86-64
 *
 * Invariants
 *   - Only registers that a called function may change are changed: rax, rcx, rdx, rdi,
 *     rsi, r8, and the first vector registers; nothing is pushed.
 *   - After 256-bit instructions the upper halves are cleared, or each SSE instruction of
 *     the program would be slow from then on.
 */
	.macro	function name
	.text
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	.endm

	.macro	end_function name
	.cfi_endproc
	.size	\name, . - \name
	.endm

/* u64 mt_groups_differ_avx2(live: rdi, kept: rsi, groups: rdx) */
	function mt_groups_differ_avx2
	xorl	%eax, %eax
	xorl	%ecx, %ecx
1:	vmovdqu	(%rdi), %ymm0
	vmovdqu	32(%rdi), %ymm1
	vpxor	(%rsi), %ymm0, %ymm0
	vpxor	32(%rsi), %ymm1, %ymm1
	.irp	at, 64, 128, 192, 256, 320, 384, 448
	vmovdqu	\at(%rdi), %ymm2
	vmovdqu	\at + 32(%rdi), %ymm3
	vpxor	\at(%rsi), %ymm2, %ymm2
	vpxor	\at + 32(%rsi), %ymm3, %ymm3
	vpor	%ymm2, %ymm0, %ymm0
	vpor	%ymm3, %ymm1, %ymm1
	.endr
	vpor	%ymm1, %ymm0, %ymm0
	xorl	%r8d, %r8d
	vptest	%ymm0, %ymm0
	setnz	%r8b
	shlq	%cl, %r8
	orq	%r8, %rax
	addq	$512, %rdi
	addq	$512, %rsi
	incl	%ecx
	decq	%rdx
	jnz	1b
	vzeroupper
	ret
	end_function mt_groups_differ_avx2

/* u64 mt_words_differ_avx2(one: rdi, other: rsi) */
	function mt_words_differ_avx2
	xorl	%eax, %eax
	.irp	at, 480, 448, 416, 384, 352, 320, 288, 256, 224, 192, 160, 128, 96, 64, 32, 0
	vmovdqu	\at(%rdi), %ymm0
	vpcmpeqq \at(%rsi), %ymm0, %ymm0
	vmovmskpd %ymm0, %ecx
	shlq	$4, %rax
	orq	%rcx, %rax
	.endr
	notq	%rax
	vzeroupper
	ret
	end_function mt_words_differ_avx2

/* void mt_copy_words_avx2(to: rdi, from: rsi) */
	function mt_copy_words_avx2
	.irp	at, 0, 64, 128, 192, 256, 320, 384, 448
	vmovdqu	\at(%rsi), %ymm0
	vmovdqu	\at + 32(%rsi), %ymm1
	vmovdqu	%ymm0, \at(%rdi)
	vmovdqu	%ymm1, \at + 32(%rdi)
	.endr
	vzeroupper
	ret
	end_function mt_copy_words_avx2

/* u64 mt_groups_differ_sse2(live: rdi, kept: rsi, groups: rdx) */
	function mt_groups_differ_sse2
	xorl	%eax, %eax
	xorl	%ecx, %ecx
	pxor	%xmm4, %xmm4
1:	pxor	%xmm0, %xmm0
	pxor	%xmm1, %xmm1
	.irp	at, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480
	movdqu	\at(%rdi), %xmm2
	movdqu	\at(%rsi), %xmm3
	pxor	%xmm3, %xmm2
	por	%xmm2, %xmm0
	movdqu	\at + 16(%rdi), %xmm2
	movdqu	\at + 16(%rsi), %xmm3
	pxor	%xmm3, %xmm2
	por	%xmm2, %xmm1
	.endr
	por	%xmm1, %xmm0
	pcmpeqb	%xmm4, %xmm0
	pmovmskb %xmm0, %r8d
	cmpl	$0xffff, %r8d
	setne	%r8b
	movzbl	%r8b, %r8d
	shlq	%cl, %r8
	orq	%r8, %rax
	addq	$512, %rdi
	addq	$512, %rsi
	incl	%ecx
	decq	%rdx
	jnz	1b
	ret
	end_function mt_groups_differ_sse2

/* u64 mt_words_differ_sse2(one: rdi, other: rsi): SSE2 compares halves of words; a word is
 * the same where both are. */
	function mt_words_differ_sse2
	xorl	%eax, %eax
	.irp	at, 496, 480, 464, 448, 432, 416, 400, 384, 368, 352, 336, 320, 304, 288, \
		272, 256, 240, 224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32, \
		16, 0
	movdqu	\at(%rdi), %xmm0
	movdqu	\at(%rsi), %xmm1
	pcmpeqd	%xmm1, %xmm0
	pshufd	$0xb1, %xmm0, %xmm1
	pand	%xmm1, %xmm0
	movmskpd %xmm0, %ecx
	shlq	$2, %rax
	orq	%rcx, %rax
	.endr
	notq	%rax
	ret
	end_function mt_words_differ_sse2

/* void mt_copy_words_sse2(to: rdi, from: rsi) */
	function mt_copy_words_sse2
	.irp	at, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480
	movdqu	\at(%rsi), %xmm0
	movdqu	\at + 16(%rsi), %xmm1
	movdqu	%xmm0, \at(%rdi)
	movdqu	%xmm1, \at + 16(%rdi)
	.endr
	ret
	end_function mt_copy_words_sse2

	.section .note.GNU-stack, "", @progbits

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
