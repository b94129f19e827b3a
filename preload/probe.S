/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe.S - the one place that is worth a trap; wire/reference.h; x86-64
 *
 * void mt_probe_send(u64 slot_epoch, u64 seq, u64 mask_low, u64 start, u64 end, u64 cookie,
 *                    u64 mask_high)
 *
 * Invariants
 *   - A function of its own, called: where the kernel makes the nop a call (since 6.18),
 *     that pushes a return address, and nothing of ours lies below the stack pointer here.
 *   - The nop is 5 bytes long and does not cross a cache line.
 *   - r10 is not an argument register of the ABI: mt_probe_send() loads the seventh argument
 *     into it, and jumps to the probe.
 */
	.text
	.globl	mt_probe_send
	.hidden	mt_probe_send
	.type	mt_probe_send, @function
	.p2align 4
mt_probe_send:
	.cfi_startproc
	endbr64
	movq	8(%rsp), %r10
	jmp	mt_probe_site
	.cfi_endproc
	.size	mt_probe_send, . - mt_probe_send

	.section mt_probe, "ax", @progbits
	.globl	mt_probe_site
	.hidden	mt_probe_site
	.type	mt_probe_site, @function
	.p2align 6
mt_probe_site:
	.cfi_startproc
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
	.cfi_endproc
	.size	mt_probe_site, . - mt_probe_site

	.section .note.GNU-stack, "", @progbits

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
