/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sandbox.c - see sandbox.h for the contract
 *
 * Invariants
 *   - What is promised to be given up is believed before the kernel is asked: a thread that
 *     waits with its eyes open without need loses nothing.
 *   - A thread that is strict stays so.
 *   - Threads and fork's children inherit that the counter is taken away: nobody asks which.
 */
#include "preload/sandbox.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/modules.h"
#include "preload/real.h"
#include "preload/session.h"
#include "preload/syscall.h"
#include "preload/thread.h"

bool mt_sandbox;
bool mt_sandbox_clock;

/* When the thread became strict; 0: it is not. */
static __thread uint64_t strict_since_ns __attribute__((tls_model("initial-exec")));
/* No coarse clock of threads that lost the counter alone is before this; 0: none did. */
static uint64_t no_counter_since_ns;

bool mt_sandbox_is_strict(void)
{
	return strict_since_ns != 0;
}

uint64_t mt_sandbox_now_ns(void)
{
	uint64_t since_ns = strict_since_ns ? strict_since_ns : no_counter_since_ns, ns;
	struct timespec now;

	if (!since_ns)
		return mt_read_clock_ns(CLOCK_MONOTONIC);
	if (!strict_since_ns && !mt_sandbox &&
	    !mt_syscall3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0))
		return now.tv_sec * 1000000000ULL + now.tv_nsec;
	ns = mt_read_clock_ns(CLOCK_MONOTONIC_COARSE);
	return ns > since_ns ? ns : since_ns;
}

/* The clock is another one from here on, and never before now. */
static void leave_counter(uint64_t *since_ns)
{
	*since_ns = mt_libc.clock_gettime ? mt_sandbox_now_ns() : 1;
	__atomic_store_n(&mt_sandbox_clock, true, __ATOMIC_RELEASE);
}

/* Does a vfork's child run on the slot?  Its parent, whose memory this is, gives nothing up. */
static bool is_guest(const struct mt_self *self)
{
	uint32_t owner = *(const volatile uint32_t *)self->ring.head->owner & FUTEX_TID_MASK;

	return !mt_sandbox && owner != mt_syscall3(SYS_gettid, 0, 0, 0);
}

/* A slot, its memory, and what is mapped: the thread has them before.  False: that is another's. */
static bool prepare(bool emulates)
{
	const void *sp = __builtin_frame_address(0);
	struct mt_self *self;
	uint64_t mask;

	if (!mt_session_start() || !mt_session_decided() || !mt_session.on)
		return true;
	mask = mt_signals_block();
	self = mt_thread_self(sp);
	if (self && is_guest(self)) {
		mt_signals_restore(mask);
		return false;
	}
	/* On newer kernels the probe is a system call. */
	if (self && emulates && self->capture == MT_CAPTURE_EBPF)
		self = mt_thread_go_inline(sp);
	if (self) {
		mt_thread_look_ahead(self, (uint64_t)sp);
		mt_modules_settle(self);
	}
	mt_signals_restore(mask);
	return true;
}

/* Before the calling thread gives up system calls. */
static void enter(bool emulates)
{
	int err = errno;

	if (prepare(emulates)) {
		if (mt_session.on)
			__atomic_store_n(&mt_session.control->sandboxed, 1, __ATOMIC_RELAXED);
		if (no_counter_since_ns)
			leave_counter(&no_counter_since_ns);
		mt_sandbox = true;
	}
	errno = err;
}

__attribute__((visibility("default"))) int prctl(int option, ...)
{
	unsigned long a[4];
	bool strict, emulates;
	va_list list;
	int r;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	strict = option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_STRICT;
	emulates = option == PR_SET_SYSCALL_USER_DISPATCH && a[0] != PR_SYS_DISPATCH_OFF;
	if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP || emulates)
		enter(emulates);
	if (strict)
		leave_counter(&strict_since_ns);
	if (option == PR_SET_TSC && a[0] == PR_TSC_SIGSEGV && !no_counter_since_ns)
		leave_counter(&no_counter_since_ns);
	r = mt_real_prctl(option, a);
	if (r < 0 && strict)
		strict_since_ns = 0;
	return r;
}
