/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * digest.h - the 64-bit name of a window's content
 *
 *   digest = mt_digest_finish(start, end, epoch, sum over the window's groups r of
 *                             mt_digest_part(group digest, r))
 *   group digest = XXH64(the 512 bytes, words outside the range as zero, seed 0)
 *
 * The digest of a raw window (MT_STACK_RAW) is the same of blocks instead of groups: 512
 * bytes each, counted from the window's start, the last filled up with zeros.
 *
 * The sum is kept up to date by difference, so that the cost follows the groups that
 * changed.  Sums wrap.  XXH64 is the algorithm of the xxHash specification,
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md; the tests compare with
 * libxxhash, and the decoder uses that.
 *
 * No secret is in it, and a round can be inverted: a program that means to can have two windows
 * of one digest, whose words differ in two places, and one is then taken for the other.
 *
 * Compiles for BPF and for user space; pure arithmetic, no loop.
 */
#include <linux/types.h>

#define MT_XXH_P1 0x9E3779B185EBCA87ULL
#define MT_XXH_P2 0xC2B2AE3D27D4EB4FULL
#define MT_XXH_P3 0x165667B19E3779F9ULL
#define MT_XXH_P4 0x85EBCA77C2B2AE63ULL

static inline __attribute__((always_inline)) __u64 mt_rotl64(__u64 x, int r)
{
	return x << r | x >> (64 - r);
}

static inline __attribute__((always_inline)) __u64 mt_xxh_round(__u64 lane, __u64 word)
{
	return mt_rotl64(lane + word * MT_XXH_P2, 31) * MT_XXH_P1;
}

static inline __attribute__((always_inline)) __u64 mt_xxh_avalanche(__u64 h)
{
	h ^= h >> 33;
	h *= MT_XXH_P2;
	h ^= h >> 29;
	h *= MT_XXH_P3;
	return h ^ h >> 32;
}

/* The four lanes before the first word, seed 0. */
#define MT_XXH_LANE1 (MT_XXH_P1 + MT_XXH_P2)
#define MT_XXH_LANE2 MT_XXH_P2
#define MT_XXH_LANE3 0ULL
#define MT_XXH_LANE4 (0ULL - MT_XXH_P1)

/* XXH64 of 512 bytes whose words went through the four lanes in turn. */
static inline __attribute__((always_inline)) __u64 mt_xxh_finish_group(__u64 l1, __u64 l2, __u64 l3,
								       __u64 l4)
{
	__u64 h = mt_rotl64(l1, 1) + mt_rotl64(l2, 7) + mt_rotl64(l3, 12) + mt_rotl64(l4, 18);

	h = (h ^ mt_xxh_round(0, l1)) * MT_XXH_P1 + MT_XXH_P4;
	h = (h ^ mt_xxh_round(0, l2)) * MT_XXH_P1 + MT_XXH_P4;
	h = (h ^ mt_xxh_round(0, l3)) * MT_XXH_P1 + MT_XXH_P4;
	h = (h ^ mt_xxh_round(0, l4)) * MT_XXH_P1 + MT_XXH_P4;
	return mt_xxh_avalanche(h + 512);
}

/* What group r adds to the sum. */
static inline __attribute__((always_inline)) __u64 mt_digest_part(__u64 group_digest, __u64 r)
{
	__u64 h = (group_digest ^ (r + 1) * MT_XXH_P1) * MT_XXH_P2;

	return (h ^ h >> 29) * MT_XXH_P3;
}

/* Never 0. */
static inline __attribute__((always_inline)) __u64 mt_digest_finish(__u64 start, __u64 end,
								    __u32 epoch, __u64 sum)
{
	__u64 h = sum + mt_xxh_round(mt_xxh_round(epoch, start), end);

	h = mt_xxh_avalanche(h);
	return h ? h : 1;
}
