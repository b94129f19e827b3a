/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * binding.h - where a loaded object's calls of the malloc family go
 *
 * RTLD_DEEPBIND binds an object to its own dependencies first: its calls pass by the shim,
 * and its blocks would be missing without a word.
 *
 * Contract
 *   Input:   an object in the loader's list, with its lock held
 *   Threads: any
 *   Bounds:  a look at each of the object's relocations that have a symbol
 */
#include "preload/image.h"

#pragma GCC visibility push(hidden)

enum mt_binding {
	MT_BINDING_OPEN, /* some calls are not bound yet */
	MT_BINDING_OURS,
	MT_BINDING_ELSEWHERE,
};

enum mt_binding mt_binding_of(const struct mt_image *image);

#pragma GCC visibility pop
