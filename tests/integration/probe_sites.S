/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe_sites.S - the two probe sites of wire/reference.h, for capture_probe.c; x86-64
 *
 * void probe_fast(u64 slot_epoch, u64 seq, u64 mask_low, u64 start, u64 end, u64 cookie,
 *                 u64 mask_high)
 * void probe_safe(the same)
 */
	.text
	.globl	probe_fast
	.type	probe_fast, @function
probe_fast:
	movq	8(%rsp), %r10
	jmp	site_fast
	.size	probe_fast, . - probe_fast

	.globl	probe_safe
	.type	probe_safe, @function
probe_safe:
	movq	8(%rsp), %r10
	jmp	site_safe
	.size	probe_safe, . - probe_safe

	.section mt_probe, "ax", @progbits
	.p2align 6
site_fast:
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
	.p2align 6
site_safe:
	nop
	ret

	.section .note.GNU-stack, "", @progbits
