/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * entry.h - what the entry stubs and their C side know of one another
 *
 * Contract
 *   Input:   entry.S exports a stub for each of wire/functions.h.  The stub of a function
 *            that makes a block pushes the callee-saved registers directly below its return
 *            address (wire/reference.h, MT_SAVED_*) and calls mt_serve_HANDLER() with the
 *            caller's first three arguments, a pointer to what it pushed, and the function's
 *            number.  A function that frees needs no window: its stub jumps.
 *   Errors:  as the function's own; errno moves only where the real function moves it
 *   Threads: any, in signal handlers, before relocation, after destruction
 *   Bounds:  2 KiB of stack on all paths, the real function's and the kernel's apart
 */
#include <stddef.h>
#include <stdint.h>

#include "wire/functions.h"

#pragma GCC visibility push(hidden)

/* MT_FN_malloc and so on. */
#define MT_FN_ENUM(number, symbol, handler) MT_FN_##symbol = number,
enum { MT_FUNCTIONS(MT_FN_ENUM) };
#undef MT_FN_ENUM

/*
 * 0: the stubs jump to mt_real[] without a look at anything else.  Set to 1 by the loader,
 * so before the shim is relocated; cleared once it is known that this process is not
 * tracked, and never set again.
 */
extern unsigned char mt_on;

/* The next definition of each function, by its number; NULL before it was looked up. */
extern void *mt_real[MT_FN_MAX];

/*
 * Where the stub of an operator or of reallocarray may jump at once, by number: the next
 * definition, where that is not recorded.  NULL: it has to ask mt_pass_target().
 */
extern void *mt_pass[MT_FN_MAX];

/*
 * 1: some real function is another's than the C library's, and may call others of its kind
 * by their names, so the stubs.  Set before such a one is called.
 */
extern unsigned char mt_real_nests;

/* The stubs, by names that can not be interposed. */
extern char mt_entry_malloc[], mt_entry_memalign[], mt_entry_free[];

void *mt_serve_malloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number);
void *mt_serve_calloc(size_t n, size_t size, size_t unused, uint64_t *saved, long number);
void *mt_serve_realloc(void *p, size_t size, size_t unused, uint64_t *saved, long number);
void *mt_serve_reallocarray(void *p, size_t n, size_t size, uint64_t *saved, long number);
void *mt_serve_aligned_alloc(size_t align, size_t size, size_t unused, uint64_t *saved,
			     long number);
void *mt_serve_memalign(size_t align, size_t size, size_t unused, uint64_t *saved, long number);
long mt_serve_posix_memalign(void **ret, size_t align, size_t size, uint64_t *saved, long number);
void *mt_serve_valloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number);
void *mt_serve_pvalloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number);
void *mt_serve_new(size_t size, size_t a, size_t b, uint64_t *saved, long number);

/* free and its kin, and operator delete: what follows the pointer is passed on. */
void mt_serve_free(void *p, size_t a, size_t b, long number);

/*
 * Where the stub of function number, called from the code at caller, is to jump; NULL: the
 * C side serves it.
 */
void *mt_pass_target(long number, const void *caller);

#pragma GCC visibility pop
