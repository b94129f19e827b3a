/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * switch_stack.S - call_on_stack(void *top, void *(*function)(size_t), size_t argument)
 *
 * Calls function(argument) with nothing on the stack but the return address, at the eight
 * bytes below top.  For unwinders it is the outermost frame there.
 */
	.text
	.globl call_on_stack
	.type call_on_stack, @function
call_on_stack:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq %rsi, %rax
	movq %rdi, %rsp
	movq %rdx, %rdi
	.cfi_undefined %rip
	call *%rax
	leave
	.cfi_restore %rip
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size call_on_stack, . - call_on_stack
	.section .note.GNU-stack, "", @progbits
