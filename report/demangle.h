/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * demangle.h - a linker's name to the one in the source: C++, Rust (both schemes)
 *
 * Contract
 *   Input:     any string.
 *   Ownership: the result is the caller's, to be freed with free().
 *   Errors:    none: a name that is not mangled is copied, and NULL is out of memory.
 *   Bounds:    names longer than MT_DEMANGLE_MAX are copied, and so are those whose result
 *              is longer than MT_DEMANGLE_RESULT_MAX: in a name a few bytes can stand for
 *              all that was there before, twice.
 */

#define MT_DEMANGLE_MAX 4096
#define MT_DEMANGLE_RESULT_MAX 65536

char *mt_demangle(const char *name);
