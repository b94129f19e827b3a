/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_delta.h - one group of a window against one group of the reference
 *
 * The arithmetic of the stack codec, for BPF and user space: which words a window has of
 * a group, its XOR with the reference in compact form, the digest, and the reference
 * brought up to date.  A capture is these steps, in this order:
 *
 *   mt_scratch_begin()         the record's head; a key frame or not
 *   mt_scratch_plan_group()    for each group of the reference: is it touched?
 *   mt_group_encode(), mt_group_hash(), mt_scratch_account()
 *                              for each touched group, its live words in scratch->live
 *   mt_scratch_finish()        the digest; the record is complete
 *   -- the record goes on the ring; if it does not, nothing has moved --
 *   mt_scratch_commit_group()  for each touched group, between
 *   mt_reference_move_begin()  and mt_reference_move_end()
 *
 * bpf/capture.bpf.c walks them with one verifier-bounded call for a group;
 * wire/stack_encode.h is the walk for user space.  The decoder (collector/decode.c)
 * shares the ranges and the digest's mixing, not this walk, and hashes with libxxhash.
 *
 * No branch depends on the stack's words: the BPF verifier walks each loop's body once
 * for each of the 64 words and no path more, on all kernels since 5.12.  MT_OPAQUE hides a
 * value from the optimiser, which would turn x != 0 into branches, and would keep 64
 * terms of an OR alive in a BPF program that has 512 bytes of stack.
 */
#include <linux/types.h>

#include "wire/digest.h"
#include "wire/reference.h"
#include "wire/scratch.h"

#define MT_OPAQUE(v) __asm__ volatile("" : "+r"(v))
#define MT_COMPILER_BARRIER() __asm__ volatile("" : : : "memory")

#ifdef __bpf__
#define MT_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define MT_NO_UNROLL
#endif

#define MT_RANGE_FULL MT_RANGE(0, MT_GROUP_WORDS)

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

/*
 * Is [start, end) a window?  Aligned, not empty, within the budget from its first group
 * on, and below 2^56, the most user address bits that x86-64 and arm64 have.
 */
static inline __attribute__((always_inline)) int mt_window_valid(__u64 start, __u64 end,
								 __u64 budget_bytes)
{
	__u64 base = start & ~(__u64)(MT_GROUP_BYTES - 1);

	return !((start | end) & 7) && start < end && !(end >> 56) && end - base <= budget_bytes;
}

/* What a group adds to the sum of a digest; one that the window does not have adds nothing. */
static inline __attribute__((always_inline)) __u64 mt_group_part(__u32 range, __u64 group_digest,
								 __u32 r)
{
	return range ? mt_digest_part(group_digest, r) : 0;
}

/* XXH64 of a group; its words outside the range are zero. */
static inline __attribute__((always_inline)) __u64 mt_group_hash(const __u64 *words)
{
	__u64 l1 = MT_XXH_LANE1, l2 = MT_XXH_LANE2, l3 = MT_XXH_LANE3, l4 = MT_XXH_LANE4;
	__u32 i;

	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i += 4) {
		l1 = mt_xxh_round(l1, words[i]);
		l2 = mt_xxh_round(l2, words[i + 1]);
		l3 = mt_xxh_round(l3, words[i + 2]);
		l4 = mt_xxh_round(l4, words[i + 3]);
	}
	return mt_xxh_finish_group(l1, l2, l3, l4);
}

/*
 * XORs the words of live that bits names with those of kept (keep ~0) or with zero
 * (keep 0).  out[0] becomes the map of the words that differ, out[1] and on their XOR;
 * returns how many.  out has room for 65.  The words of live that bits does not name
 * become zero: live is then what mt_group_hash() takes.
 */
static inline __attribute__((always_inline)) __u64
mt_group_encode(__u64 *live, const __u64 *kept, __u64 bits, __u64 keep, __u64 *out)
{
	__u64 n = 0, bitmap = 0;
	__u32 i;

	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i++) {
		__u64 in = 0 - (bits >> i & 1);
		__u64 word, x, differs;

		MT_OPAQUE(in);
		word = live[i] & in;
		live[i] = word;
		x = word ^ (kept[i] & in & keep);
		out[1 + (n & (MT_GROUP_WORDS - 1))] = x;
		differs = 0 - x;
		MT_OPAQUE(differs);
		differs = (differs | x) >> 63;
		MT_OPAQUE(differs);
		n += differs;
		bitmap |= differs << i;
		MT_OPAQUE(bitmap);
	}
	out[0] = bitmap;
	return n;
}

/*
 * Brings kept up to date from what mt_group_encode() made; with keep 0 the words that
 * bitmap does not name become zero.  Returns how many words of xors were used, but reads
 * 64, whatever bitmap says.
 */
static inline __attribute__((always_inline)) __u64 mt_group_commit(__u64 *kept, __u64 bitmap,
								   const __u64 *xors, __u64 keep)
{
	__u64 n = 0;
	__u32 i;

	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i++) {
		__u64 differs = bitmap >> i & 1;

		MT_OPAQUE(differs);
		kept[i] = (kept[i] & keep) ^ (xors[n & (MT_GROUP_WORDS - 1)] & (0 - differs));
		n += differs;
	}
	return n;
}

/* Is there a window to encode against? */
static inline __attribute__((always_inline)) int
mt_reference_known(const struct mt_reference *reference)
{
	return reference->digest && !(reference->seq & 1);
}

/*
 * Begins a record of the window [start, end) against the reference.  The caller has
 * checked mt_window_valid(), and has set scratch->touched: all ones, or the groups of which
 * it knows that their words differ from those of this very reference.  An odd seq is a move that never ended (a signal handler
 * left it by longjmp): that reference is void, and its number is not used again.
 */
static inline __attribute__((always_inline)) void
mt_scratch_begin(struct mt_scratch *scratch, const struct mt_reference *reference, __u32 slot,
		 __u64 start, __u64 end, __u32 epoch, __u64 time_ns)
{
	struct mt_stack_record *record = &scratch->record;
	__u32 resync = *(const volatile __u32 *)&reference->resync_asked;
	__u64 seq = reference->seq;
	__u64 keep = mt_reference_known(reference) && resync == reference->resync_done ? ~0ULL : 0;

	scratch->seq = (seq + 1) / 2 + 1;
	scratch->sum = reference->sum & keep;
	scratch->keep = keep;
	scratch->n_out = 0;
	scratch->cursor = 0;
	scratch->resync = resync;
	scratch->spare = 0;

	record->kind = keep ? MT_STACK_DELTA : MT_STACK_KEY;
	record->slot = slot;
	record->generation = reference->generation;
	record->seq = scratch->seq;
	record->time_ns = time_ns;
	record->start = start;
	record->end = end;
	record->epoch = epoch;
	record->spare = 0;
	record->ref_digest = reference->digest & keep;
	record->digest = 0;
	record->mask[0] = 0;
	record->mask[1] = 0;
}

/*
 * Finds group r's range.  The group is touched if it was said to be, in a key frame, and
 * when its range moved.  r < groups <= MT_GROUPS_MAX.  Returns whether it is.
 */
static inline __attribute__((always_inline)) int
mt_scratch_plan_group(struct mt_scratch *scratch, const struct mt_reference *reference, __u32 r,
		      __u32 groups)
{
	__u32 range = mt_group_range(scratch->record.start, scratch->record.end, r, groups);
	__u64 bit = 1ULL << (r & 63);

	scratch->range[r] = range;
	if (!scratch->keep || range != reference->range[r])
		scratch->touched[r / 64] |= bit;
	return !!(scratch->touched[r / 64] & bit);
}

/*
 * Group r was encoded: n words differ, digest is its hash; or it is not in the window any
 * more, then both are 0.
 */
static inline __attribute__((always_inline)) void
mt_scratch_account(struct mt_scratch *scratch, const struct mt_reference *reference, __u32 r,
		   __u64 n, __u64 digest)
{
	__u32 old_range = reference->range[r] & (__u32)scratch->keep;

	scratch->group_digest[r] = digest;
	scratch->sum += mt_group_part(scratch->range[r], digest, r) -
			mt_group_part(old_range, reference->group_digest[r], r);
	if (n) {
		scratch->record.mask[r / 64] |= 1ULL << (r & 63);
		scratch->n_out += 1 + n;
	}
}

/* Completes the record: its length and digest. */
static inline __attribute__((always_inline)) void mt_scratch_finish(struct mt_scratch *scratch)
{
	struct mt_stack_record *record = &scratch->record;

	record->len = sizeof(*record) + scratch->n_out * 8;
	record->digest = mt_digest_finish(record->start, record->end, record->epoch, scratch->sum);
}

/*
 * Moves touched group r of the reference; kept: its words; out: mt_scratch_out() +
 * scratch->cursor.  To be called in rising order of r.
 */
static inline __attribute__((always_inline)) void
mt_scratch_commit_group(struct mt_scratch *scratch, struct mt_reference *reference, __u64 *kept,
			const __u64 *out, __u32 r)
{
	__u64 in_record = scratch->record.mask[r / 64] >> (r & 63) & 1;
	__u64 n;

	reference->range[r] = scratch->range[r];
	reference->group_digest[r] = scratch->group_digest[r];
	if (!in_record && scratch->keep)
		return;
	n = mt_group_commit(kept, in_record ? out[0] : 0, out + 1, scratch->keep);
	scratch->cursor += in_record + n;
}

static inline __attribute__((always_inline)) void
mt_reference_move_begin(struct mt_reference *reference, const struct mt_scratch *scratch)
{
	*(volatile __u64 *)&reference->seq = 2 * scratch->seq - 1;
	MT_COMPILER_BARRIER();
}

/* The reference's words are those of the record: it takes the record's name. */
static inline __attribute__((always_inline)) void
mt_reference_move_end(struct mt_reference *reference, const struct mt_scratch *scratch)
{
	const struct mt_stack_record *record = &scratch->record;

	reference->digest = record->digest;
	reference->sum = scratch->sum;
	reference->start = record->start;
	reference->end = record->end;
	reference->epoch = record->epoch;
	reference->resync_done = scratch->resync;
	MT_COMPILER_BARRIER();
	*(volatile __u64 *)&reference->seq = 2 * scratch->seq;
}

/*
 * A new owner: what the slot knew is another's.  The caller clears the dictionary.  A
 * move that never ended, because its thread was killed, ends here.
 */
static inline __attribute__((always_inline)) void mt_reference_claim(struct mt_reference *reference)
{
	reference->generation++;
	reference->digest = 0;
	reference->sum = 0;
	reference->resync_done = reference->resync_asked;
	MT_COMPILER_BARRIER();
	*(volatile __u64 *)&reference->seq = (reference->seq + 3) & ~1ULL;
}
