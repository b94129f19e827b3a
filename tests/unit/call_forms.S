/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call_forms.S - see call_forms.h
 */
	.section .rodata.call_ends, "a"
	.globl	call_ends
call_ends:
	.section .rodata.other_ends, "a"
	.globl	other_ends
other_ends:

	/* Apart, so that no byte of one is taken for another's. */
	.macro	ends table, form:vararg
	.fill	8, 1, 0x90
	\form
1:	.pushsection .rodata.\table, "a"
	.quad	1b - call_forms
	.popsection
	.endm

	.macro	is_call form:vararg
	ends	call_ends, \form
	.endm

	.macro	is_other form:vararg
	ends	other_ends, \form
	.endm

	.macro	call_then_nop form:vararg
	.fill	8, 1, 0x90
	\form
	nop
1:	.pushsection .rodata.other_ends, "a"
	.quad	1b - call_forms
	.popsection
	.endm

	.text
	.globl	call_forms
call_forms:
	is_call	call *%rax
	is_call	call *%rsp
	is_call	call *%r11
	is_call	notrack call *%rax
	is_call	call *(%rax)
	is_call	call *(%r10)
	is_call	call *(%rsp)
	is_call	call *(%r12)
	is_call	call *(%rbp)
	is_call	call *(%r13)
	is_call	call *(%rax, %rbx, 8)
	is_call	call *(%rbp, %rbx, 8)
	is_call	call *(, %rbx, 8)
	is_call	call *0x18(%rax)
	is_call	call *0x18(%rsp)
	is_call	call *-8(%r13, %r14, 2)
	is_call	call *0x1234(%rax)
	is_call	call *0x1234(%r12)
	is_call	call *0x1234(%rax, %rbx, 4)
	is_call	call *0x1234(%rip)
	is_call	call *0x1234
	is_call	call *%fs:0x10
	is_call	addr32 call *(%eax)
	is_call	.byte 0x48, 0xff, 0x15, 0x34, 0x12, 0, 0 /* rex.w call *0x1234(%rip) */
	is_other	jmp *%rax
	is_other	jmp *0x1234(%rip)
	is_other	push 0x1234(%rip)
	is_other	incl (%rax)
	is_other	lcall *(%rax)
	is_other	endbr64
	is_other	ret
	call_then_nop	call *%rax
	call_then_nop	call *0x18(%rax)

	/* As much as a call with less behind it, and with more. */
	is_other	.byte 0xff, 0x50
	is_other	.byte 0xff, 0x54, 0x24
	is_other	.byte 0xff, 0x14
	is_other	.byte 0xff, 0x10, 0x00
	.fill	8, 1, 0x90

	.section .rodata.call_ends, "a"
	.globl	call_ends_end
call_ends_end:
	.section .rodata.other_ends, "a"
	.globl	other_ends_end
other_ends_end:

	.section .note.GNU-stack, "", @progbits
