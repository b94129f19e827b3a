/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * inside.h - what those in a PID namespace below ours are called here
 *
 * Contract
 *   Input:   inner: what the process, or the thread, calls itself.
 *   Errors:  0: there is none, it has ended, or that can not be told (Linux without
 *            CONFIG_PROC_CHILDREN).
 *   Bounds:  a look at each child, or thread, of one process.
 */
#include <stdint.h>

/* The child of a process of ours; parent: what that is called here. */
uint32_t mt_inside_child(uint32_t parent, uint32_t inner);

/* The thread of a process; tgid: what that is called here. */
uint32_t mt_inside_thread(uint32_t tgid, uint32_t inner);
