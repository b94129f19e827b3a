/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * compare.h - which words of a stack have changed, and copies of them, as fast as the machine
 * can
 *
 * Contract
 *   Input:   readable memory, groups of wire/reference.h; of any alignment to 8 bytes
 *   Errors:  none
 *   Threads: any, once mt_compare_choose() was called; before that the portable way
 *   Bounds:  no call, no memory; the vector ways leave no state behind that a function
 *            may not leave (they end in vzeroupper)
 *
 * A call by the loader is not an ordinary one: while it binds a function or finds
 * thread-local data it keeps what is in vector registers across a malloc that it believes
 * to be its own.  For such a caller the portable way is taken.
 */
#include <stdint.h>

#include "wire/stack_encode.h"

#pragma GCC visibility push(hidden)

/* Looks at the machine and for the loader; once, at start. */
void mt_compare_choose(void);

/* The way to compare for a window whose allocation function returns to caller. */
const struct mt_compare *mt_compare_for(uint64_t caller);

/* preload/compare.S; for machines with AVX2. */
__u64 mt_groups_differ_avx2(const __u64 *live, const __u64 *kept, __u64 groups);
__u64 mt_words_differ_avx2(const __u64 *one, const __u64 *other);
void mt_copy_words_avx2(__u64 *to, const __u64 *from);

/* For any x86-64. */
__u64 mt_groups_differ_sse2(const __u64 *live, const __u64 *kept, __u64 groups);
__u64 mt_words_differ_sse2(const __u64 *one, const __u64 *other);
void mt_copy_words_sse2(__u64 *to, const __u64 *from);

#pragma GCC visibility pop
