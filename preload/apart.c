/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * apart.c - see apart.h
 *
 * Invariants
 *   - The child ends without a signal, and is seen by no wait() of the program but one that
 *     asks for clones: no SIGCHLD comes that the program did not cause.
 *   - The parent is suspended while the child uses the stack below it (CLONE_VFORK).
 */
#include "preload/apart.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/wait.h>

#include "preload/syscall.h"

/* The child's thread id; only the parent returns. */
static long clone_and_call(void (*call)(void *arg), void *arg)
{
	long ret;

	__asm__ volatile("movq %%rsp, %%rsi\n\t"
			 "andq $-16, %%rsi\n\t"
			 "xorl %%edx, %%edx\n\t"
			 "xorl %%r10d, %%r10d\n\t"
			 "xorl %%r8d, %%r8d\n\t"
			 "syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jne 1f\n\t"
			 "movq %[arg], %%rdi\n\t"
			 "call *%[call]\n\t"
			 "xorl %%edi, %%edi\n\t"
			 "movl %[exit], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK)),
			   [call] "r"(call), [arg] "r"(arg), [exit] "i"(SYS_exit)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}

int mt_apart(void (*call)(void *arg), void *arg)
{
	long child = clone_and_call(call, arg), err;

	if (child < 0)
		return child;
	do
		err = mt_syscall4(SYS_wait4, child, 0, __WALL, 0);
	while (err == -EINTR);
	return 0;
}
