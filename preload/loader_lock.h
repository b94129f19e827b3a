/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * loader_lock.h - looks at the loader's list that wait for no call-back of the program's
 *
 * dl_iterate_phdr() calls back with a lock of the loader's held.  A call-back may wait for
 * a thread that allocates, or for a lock that such a thread has; that thread must not wait
 * for the loader's lock in turn.  So it is tried for a while, and then not got.
 *
 * Contract
 *   Input:     signals are blocked from the one call to the other
 *   Threads:   any; the lock is recursive
 *   Bounds:    waits for a millisecond, about; no allocation, no system call where nobody
 *              else has the lock
 */
#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Finds the lock, once: where that fails, mt_loader_lock() succeeds and does nothing. */
void mt_loader_lock_find(void);

bool mt_loader_lock(void);
void mt_loader_unlock(void);

/* In a fork's child: can it still be had?  Not if a thread had it that stayed behind; nor, where
 * it was not found, if there were such threads. */
bool mt_loader_lock_survived(bool threaded);

#pragma GCC visibility pop
