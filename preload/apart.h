/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * apart.h - a call made where the program's descriptors are not
 *
 * Contract
 *   Input:   call must not return by a longjmp, nor allocate; signals are blocked
 *   Errors:  a negative errno: no such child can be had, call was not made
 *   Threads: the caller waits until call has returned; the others go on
 *   Bounds:  runs on the caller's stack
 */

#pragma GCC visibility push(hidden)

/*
 * Calls call(arg) in a child that shares the memory, what it maps included, and has a
 * descriptor table of its own, with copies of the caller's.  The child is reaped.
 */
int mt_apart(void (*call)(void *arg), void *arg);

#pragma GCC visibility pop
