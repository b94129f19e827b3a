/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe_sites.S - a probe as wire/reference.h has it, for capture_probe.c; x86-64
 *
 * Under the names of preload/probe.h: mt_probe_renew() is the shim's, and looks for its site.
 */
	.text
	.globl	mt_probe_send
	.hidden	mt_probe_send
	.type	mt_probe_send, @function
mt_probe_send:
	movq	8(%rsp), %r10
	jmp	mt_probe_site
	.size	mt_probe_send, . - mt_probe_send

	.section mt_probe, "ax", @progbits
	.globl	mt_probe_site
	.hidden	mt_probe_site
	.type	mt_probe_site, @function
	.p2align 6
mt_probe_site:
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
	.size	mt_probe_site, . - mt_probe_site

	.section .note.GNU-stack, "", @progbits
