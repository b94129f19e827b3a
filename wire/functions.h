/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * functions.h - the functions that the shim stands in front of, once
 *
 * X(number, symbol, handler): number is what a cell's kind says (never reused), handler
 * is how the shim serves it.  Everything else is made from this list: the entry stubs
 * (preload/entry.S includes it, hence no C here), the table of real functions, the
 * exports map's check and the names that a report prints.
 *
 * The operators are passed through by a tail jump where the next definition forwards to
 * malloc and free, as libstdc++'s do.
 */

#define MT_FN_FIRST_OPERATOR 32

#define MT_FUNCTIONS(X)                                    \
	X(1, malloc, malloc)                               \
	X(2, calloc, calloc)                               \
	X(3, realloc, realloc)                             \
	X(4, reallocarray, reallocarray)                   \
	X(5, aligned_alloc, aligned_alloc)                 \
	X(6, memalign, memalign)                           \
	X(7, posix_memalign, posix_memalign)               \
	X(8, valloc, valloc)                               \
	X(9, pvalloc, pvalloc)                             \
	X(10, free, free)                                  \
	X(11, cfree, free)                                 \
	X(12, free_sized, free)                            \
	X(13, free_aligned_sized, free)                    \
	X(32, _Znwm, new)                                  \
	X(33, _Znam, new)                                  \
	X(34, _ZnwmRKSt9nothrow_t, new)                    \
	X(35, _ZnamRKSt9nothrow_t, new)                    \
	X(36, _ZnwmSt11align_val_t, new)                   \
	X(37, _ZnamSt11align_val_t, new)                   \
	X(38, _ZnwmSt11align_val_tRKSt9nothrow_t, new)     \
	X(39, _ZnamSt11align_val_tRKSt9nothrow_t, new)     \
	X(40, _ZdlPv, delete)                              \
	X(41, _ZdaPv, delete)                              \
	X(42, _ZdlPvm, delete)                             \
	X(43, _ZdaPvm, delete)                             \
	X(44, _ZdlPvRKSt9nothrow_t, delete)                \
	X(45, _ZdaPvRKSt9nothrow_t, delete)                \
	X(46, _ZdlPvSt11align_val_t, delete)               \
	X(47, _ZdaPvSt11align_val_t, delete)               \
	X(48, _ZdlPvmSt11align_val_t, delete)              \
	X(49, _ZdaPvmSt11align_val_t, delete)              \
	X(50, _ZdlPvSt11align_val_tRKSt9nothrow_t, delete) \
	X(51, _ZdaPvSt11align_val_tRKSt9nothrow_t, delete)

#define MT_FN_MAX 52
