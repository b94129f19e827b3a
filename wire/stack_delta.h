/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_delta.h - one group of a window against one group of the reference
 *
 * The arithmetic of the stack codec, for BPF and user space: which words a window has of
 * a group, its XOR with the reference in compact form, and the reference brought up to
 * date from that.  A program that encodes a window walks its groups with these; one that
 * decodes it walks them with the same, and checks the digest with libxxhash.
 *
 * No branch depends on the stack's words: the BPF verifier walks each loop's body once
 * for each of the 64 words and no path more, on all kernels since 5.12.  MT_OPAQUE hides a
 * value from the optimiser, which would turn x != 0 into branches, and would keep 64
 * terms of an OR alive in a BPF program that has 512 bytes of stack.
 */
#include <linux/types.h>

#include "wire/digest.h"
#include "wire/reference.h"

#define MT_OPAQUE(v) __asm__ volatile("" : "+r"(v))

#ifdef __bpf__
#define MT_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define MT_NO_UNROLL
#endif

/* The words [lo, hi) as a map: bit i for word i.  lo <= hi <= 64. */
static inline __attribute__((always_inline)) __u64 mt_range_bits(__u32 range)
{
	__u64 lo = MT_RANGE_LO(range), hi = MT_RANGE_HI(range);
	__u64 below_hi = hi >= 64 ? ~0ULL : (1ULL << (hi & 63)) - 1;

	return below_hi & ~0ULL << (lo & 63) & (lo >= 64 ? 0 : ~0ULL);
}

/* The run-time address of group r's first word in a window that starts at start;
 * groups is a power of two. */
static inline __attribute__((always_inline)) __u64 mt_group_address(__u64 start, __u32 r,
								    __u32 groups)
{
	__u64 first = start / MT_GROUP_BYTES;

	return (first + ((r - first) & (groups - 1))) * MT_GROUP_BYTES;
}

/* The words of group r that the window [start, end) has; start and end are multiples of 8. */
static inline __attribute__((always_inline)) __u32 mt_group_range(__u64 start, __u64 end, __u32 r,
								  __u32 groups)
{
	__u64 at = mt_group_address(start, r, groups);
	__u64 lo = start > at ? (start - at) / 8 : 0;
	__u64 hi = end < at + MT_GROUP_BYTES ? (end - at) / 8 : MT_GROUP_WORDS;

	if (end <= at)
		return 0;
	return MT_RANGE(lo, hi);
}
