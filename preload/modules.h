/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * modules.h - what is loaded, told before a stack needs it; what is not served, named
 *
 * Contract
 *   Errors:  none; a list that could not be sent is sent again
 *   Threads: any thread with a slot; the loader's list lock orders those that send.  Not in
 *            a fork's child in which that is held for ever: it keeps its parent's list.
 *   Bounds:  nothing while the loader has been idle; else its lock and one call-back, with
 *            signals blocked, and a record for each object that is new
 */
#include "preload/thread.h"

#pragma GCC visibility push(hidden)

/* Where the loader's code lies; all addresses, until it is known. */
struct mt_loader {
	uint64_t start, bytes;
};

extern struct mt_loader mt_loader;

/* The loader allocates, so what is loaded may be about to change. */
void mt_modules_expect(void);

/* To be told of each allocation, by what its stub pushed. */
static inline void mt_modules_watch(const uint64_t *saved)
{
	if (__builtin_expect(saved[MT_SAVED_RIP] - mt_loader.start < mt_loader.bytes, 0))
		mt_modules_expect();
}

/* The loader frees a block. */
void mt_modules_freed(void);

/* To be told of each block that is freed, by where the call returns to. */
static inline void mt_modules_watch_free(uint64_t pc)
{
	if (__builtin_expect(pc - mt_loader.start < mt_loader.bytes, 0))
		mt_modules_freed();
}

/* Sends what was loaded since the last list; the whole list after an unload. */
void mt_modules_check(struct mt_self *self);

/* The same for a process that is about to give up system calls: there is nothing to send then until
 * the loader loads again. */
void mt_modules_settle(struct mt_self *self);

/* In the constructor of a tracked process: looks for what the stubs do not serve. */
void mt_modules_begin(void);

/* In a fork's child. */
void mt_modules_fork(void);

#pragma GCC visibility pop
