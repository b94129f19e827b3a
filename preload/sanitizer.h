/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * sanitizer.h - AddressSanitizer's runtime, where that is a library
 *
 * It ends a program in which another library comes before it, as a preloaded one does, lest
 * malloc be another's.  The shim's stubs go on to the next one, the runtime's, and nothing is
 * tracked (mt_real_sanitizes()).
 *
 * Contract
 *   Errors:    a program that answers __asan_default_options() and __lsan_default_options()
 *              both is ended by the runtime
 *   Threads:   the runtime's first; after that any
 *   Bounds:    no allocation
 */

#pragma GCC visibility push(hidden)

/* The shim's path, where the loader has it no more; NULL: the loader has it. */
const char *mt_sanitizer_own_name(void);

#pragma GCC visibility pop
