/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * sandbox.h - has the process given up system calls?
 *
 * A thread in a sandbox is killed by the first system call that its filter does not know.
 * prctl(2) tells: PR_SET_NO_NEW_PRIVS comes before a filter, PR_SET_SECCOMP is one.  From
 * then on the shim does without (as it does where the program means to emulate them,
 * PR_SET_SYSCALL_USER_DISPATCH): it waits with its eyes open, and of a stack that it did not
 * know before it reads no other page than the one that is in use.
 *
 * SECCOMP_MODE_STRICT takes away the time-stamp counter as well: such a thread's clock is
 * the coarse one, of some milliseconds, and never before the last fine one.  PR_SET_TSC takes
 * away nothing else, and the kernel is asked for the time.
 *
 * Contract
 *   Errors:    prctl() as the kernel has it.
 *   Threads:   any.  A filter that another thread brings with SECCOMP_FILTER_FLAG_TSYNC is
 *              everybody's, so whoever calls prctl() speaks for all; but for a vfork's child,
 *              which is about to execute something else.
 *   Bounds:    not seen are filters by syscall(SYS_seccomp) without PR_SET_NO_NEW_PRIVS,
 *              and those that were there before the program began.  A thread, or a fork's
 *              child, that allocates for the first time in a sandbox can not do without
 *              rt_sigprocmask, mmap, mprotect, madvise, getpid and gettid; where there is no
 *              slot left it needs readlink, clone and wait4, for a child that asks for more.
 */
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Never false again. */
extern bool mt_sandbox;

/* There are threads that may not read the time-stamp counter.  Never false again. */
extern bool mt_sandbox_clock;

/* May the calling thread do no more than read, write and end? */
bool mt_sandbox_is_strict(void);

/* Of the calling thread; in nanoseconds, CLOCK_MONOTONIC. */
uint64_t mt_sandbox_now_ns(void);

#pragma GCC visibility pop
