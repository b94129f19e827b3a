/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * capture.h - the window of an allocation becomes the name of a stack
 *
 * Contract
 *   Input:   what the entry stub pushed: the window's start
 *   Errors:  a stack that can not be captured is named MT_NONE_LOST, and counted
 *   Threads: the slot's; nests in signal handlers, may be left by siglongjmp()
 *   Bounds:  known stacks: no system call but, off the thread's own stack, one for each
 *            page; new ones wait while a ring is full, as long as the collector lives
 */
#include <stdint.h>

#include "preload/thread.h"

#pragma GCC visibility push(hidden)

/* As an event's cell has it. */
struct mt_stack_name {
	uint16_t half;
	uint32_t word;
};

/*
 * Names the stack.  *self may become another slot of the same thread, or NULL where the
 * process is not tracked any more.
 */
struct mt_stack_name mt_capture(struct mt_self **self, const uint64_t *saved);

#pragma GCC visibility pop
