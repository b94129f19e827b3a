/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * syscall.h - system calls that leave errno alone
 *
 * Contract
 *   Errors:  the kernel's: a negative errno
 *   Threads: any, also in a signal handler, before relocation and after destruction: no
 *            symbol is used and none can be interposed
 */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static inline long mt_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

static inline long mt_syscall4(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

static inline long mt_syscall3(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

/* Memory that core dumps leave out; NULL: there is none. */
static inline void *mt_map(uint64_t bytes, int protection, int flags, int fd, uint64_t offset)
{
	long at = mt_syscall6(SYS_mmap, 0, bytes, protection, flags, fd, offset);

	if (at < 0 && at > -4096)
		return NULL;
	mt_syscall3(SYS_madvise, at, bytes, MADV_DONTDUMP);
	return (void *)at;
}

/* The kernel's signal set, which is smaller than the C library's. */
static inline uint64_t mt_signals_block(void)
{
	uint64_t all = ~0ULL, old = 0;

	mt_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, sizeof(all));
	return old;
}

static inline void mt_signals_restore(uint64_t old)
{
	mt_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof(old));
}
