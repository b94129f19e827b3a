/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * modules.h - what is loaded, told before a stack needs it; what is not served, named
 *
 * Contract
 *   Errors:  none; a list that could not be sent is sent again
 *   Threads: any thread with a slot; the loader's list lock orders those that send.  Not in
 *            the fork's child of a threaded process, which keeps its parent's list.
 *   Bounds:  known lists: the loader's lock and one call-back; a record for each object
 */
#include "preload/thread.h"

/* Sends what was loaded since the last list; the whole list after an unload. */
void mt_modules_check(struct mt_self *self);

/* In the constructor of a tracked process: looks for what the stubs do not serve. */
void mt_modules_begin(void);

/* In a fork's child. */
void mt_modules_fork(void);
