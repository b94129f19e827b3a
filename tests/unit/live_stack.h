/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * live_stack.h - stacks of the test itself, copied as the shim copies them
 *
 * live_capture() stands for malloc: its entry stub pushes the callee-saved registers below
 * its return address, exactly as preload's does; the window that begins there is unwound,
 * by the fast loop and by the full evaluator, and the chain is compared with libgcc's.  What can
 * be taught of it (collector/teach.h) is then found by itself (preload/learned.h).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIVE_FRAMES 16384

/* What became of the captures since live_reset(). */
struct live_result {
	unsigned int captures;
	unsigned int whole;	/* END, and the chain is libgcc's */
	unsigned int truncated; /* TRUNCATED, and the chain is the beginning of libgcc's */
	unsigned int no_cfi;	/* NO_CFI, likewise */
	unsigned int longer;	/* END, and libgcc's is the beginning of the chain */
	unsigned int wrong;	/* all else */
	unsigned int learned;	/* of them all, those found as a thread does that was taught */
	/* Of the last one. */
	unsigned int stop; /* enum mt_stop */
	size_t len;
	uint64_t pcs[LIVE_FRAMES]; /* run-time addresses, the innermost first */
};

extern struct live_result live;

/* glibc's: where the main thread's stack ends for the shim, too; argc lies there. */
extern void *__libc_stack_end;

/* budget_bytes: of the windows from now on. */
void live_reset(uint32_t budget_bytes);

/* How stacks end from now on; 0: as the thread's. */
void live_set_bound(const void *bound);

/* Whether function, of at most len bytes, is in the last chain. */
bool live_has(const void *function, size_t len);

/* In place of malloc. */
void live_capture(void);

/* Scenarios in C++, tests/unit/live_cxx.cc: each captures at least once. */
void live_cxx_library(void);
void live_cxx_unwinding(void);
void live_cxx_throw(void);

#ifdef __cplusplus
}
#endif
