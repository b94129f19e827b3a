/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe.c - see probe.h
 *
 * Invariants
 *   - Linux 6.18 makes the probe's nop a call of a page that it maps for the process; a
 *     fork's child gets the call, with the rest of the page, but not what is called (the
 *     mapping is VM_DONTCOPY): it would crash there.  Dropping the page brings the file's
 *     nop back.  The kernel sets the probe again whenever a mapping of the file changes:
 *     taking the page out of its mapping by a change of its protection, and putting it
 *     back, does that.  Where one of these is refused, the nop stays, and registration
 *     finds out that there is no probe.
 */
#include "preload/probe.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/syscall.h"
#include "wire/control.h"

#define NOP 0x0f
#define INT3 0xcc

void mt_probe_renew(void)
{
	long page = (long)mt_probe_site & ~(long)(MT_PAGE_BYTES - 1);
	unsigned char first = *(const volatile unsigned char *)mt_probe_site;

	if (first == NOP || first == INT3)
		return;
	mt_syscall3(SYS_madvise, page, MT_PAGE_BYTES, MADV_DONTNEED);
	mt_syscall3(SYS_mprotect, page, MT_PAGE_BYTES, PROT_EXEC);
	mt_syscall3(SYS_mprotect, page, MT_PAGE_BYTES, PROT_READ | PROT_EXEC);
}
