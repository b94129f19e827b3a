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
 *   - valgrind runs a translation of the code.  It takes the kernel's breakpoint for one of
 *     the program's, which dies of it.
 */
#include "preload/probe.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/syscall.h"
#include "wire/control.h"

/* valgrind.h's client request "are you there?", as an instrumented program makes it. */
#define REQUEST_PRESENT 0x1001

#define NOP 0x0f
#define INT3 0xcc

bool mt_probe_is_instrumented(void)
{
	const volatile uint64_t request[6] = { REQUEST_PRESENT };
	uint64_t answer = 0;

	/* Four rotations by 128 bits in all, and an exchange with itself: nothing, elsewhere. */
	__asm__ volatile("rolq $3, %%rdi\n\t"
			 "rolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\t"
			 "rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer != 0;
}

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
