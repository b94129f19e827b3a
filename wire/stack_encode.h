/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_encode.h - capture in user space: a live window becomes a stack record
 *
 * Contract
 *   Input:     a window that mt_window_valid() accepts, on readable memory, or a readable
 *              copy of it: shift is what lies between a word's address and where it is read,
 *              0 for the window itself.  Words outside the window are not read.
 *              budget_bytes: a power of two, 4 to 64 KiB.  reference, dictionary and words
 *              as wire/reference.h lays them out, trusted as the process's own memory is;
 *              a scratch with copies, mt_scratch_inline_bytes().
 *   Ownership: all memory is the caller's; mt_encode_window() leaves the record in the
 *              scratch, complete, at &scratch->record.
 *   Threads:   one capture at a time in a slot; one that interrupts another there (a
 *              signal handler) must not use its scratch.
 *   Bounds:    no allocation or system call, no call but those of struct mt_compare; frames
 *              of a few words.  Compile with -fno-tree-loop-distribute-patterns where
 *              memset() must not be called.
 *
 * How the shim uses it, with seq read before anything else.  eBPF: the window's digest first,
 *
 *   digest = mt_digest_window(..., mask);
 *   entry = mt_dictionary_find(dictionary, digest)
 *   if (there is one and seq, resync_asked have not moved)
 *           the event names entry: nothing to send
 *   else the probe, with seq and mask.
 *
 * Inline, where a scratch is at hand, each word is read once for all:
 *
 *   mt_read_window(...), which gives the digest too
 *   entry = mt_dictionary_find(...) as above, or
 *   mt_encode_window(...); the record goes on the ring; then mt_commit_window().
 */
#include <linux/types.h>

#include "wire/digest.h"
#include "wire/reference.h"
#include "wire/scratch.h"
#include "wire/stack_delta.h"

/*
 * How words are compared, by what the machine has.  The stack may be written meanwhile: what
 * counts is what is copied later.
 */
struct mt_compare {
	/* Groups (1 to 64) that lie one after the other: bit i of the result is set when
	 * the i-th group of live differs from the i-th of kept. */
	__u64 (*groups)(const __u64 *live, const __u64 *kept, __u64 groups);
	/* Words of a group: bit i is set when the i-th of one differs from that of other. */
	__u64 (*words)(const __u64 *one, const __u64 *other);
	/* A group, each word read once. */
	void (*copy)(__u64 *to, const __u64 *from);
};

/* A word of the stack, whatever type it has for whom it belongs to. */
typedef __u64 __attribute__((may_alias)) mt_any_word;

static inline __u64 mt_live_word(const __u64 *at)
{
	return *(const volatile mt_any_word *)at;
}

/* mt_compare.groups, anywhere. */
static inline __u64 mt_groups_differ(const __u64 *live, const __u64 *kept, __u64 groups)
{
	__u64 result = 0, g, i;

	for (g = 0; g < groups; g++) {
		__u64 differs = 0;

		for (i = 0; i < MT_GROUP_WORDS; i++)
			differs |= mt_live_word(live + i) ^ kept[i];
		result |= (__u64)(differs != 0) << g;
		live += MT_GROUP_WORDS;
		kept += MT_GROUP_WORDS;
	}
	return result;
}

/* mt_compare.words, anywhere. */
static inline __u64 mt_words_of_group_differ(const __u64 *one, const __u64 *other)
{
	__u64 result = 0;
	__u32 i;

	for (i = 0; i < MT_GROUP_WORDS; i++)
		result |= (__u64)(one[i] != other[i]) << i;
	return result;
}

/* mt_compare.copy, anywhere. */
static inline void mt_copy_words(__u64 *to, const __u64 *from)
{
	__u32 i;

	for (i = 0; i < MT_GROUP_WORDS; i++)
		to[i] = mt_live_word(from + i);
}

/* Do the words [lo, hi) of a group differ? */
static inline int mt_words_differ(const __u64 *live, const __u64 *kept, __u32 range)
{
	__u64 differs = 0;
	__u32 i;

	for (i = MT_RANGE_LO(range); i < MT_RANGE_HI(range); i++)
		differs |= mt_live_word(live + i) ^ kept[i];
	return differs != 0;
}

/* mt_group_hash() of live words, each read once; those outside the range count as zero. */
static inline __u64 mt_live_hash(const __u64 *live, __u32 range)
{
	__u64 l1 = MT_XXH_LANE1, l2 = MT_XXH_LANE2, l3 = MT_XXH_LANE3, l4 = MT_XXH_LANE4;
	__u64 bits = mt_range_bits(range);
	__u32 i;

	for (i = 0; i < MT_GROUP_WORDS; i += 4, bits >>= 4) {
		l1 = mt_xxh_round(l1, bits & 1 ? mt_live_word(live + i) : 0);
		l2 = mt_xxh_round(l2, bits & 2 ? mt_live_word(live + i + 1) : 0);
		l3 = mt_xxh_round(l3, bits & 4 ? mt_live_word(live + i + 2) : 0);
		l4 = mt_xxh_round(l4, bits & 8 ? mt_live_word(live + i + 3) : 0);
	}
	return mt_xxh_finish_group(l1, l2, l3, l4);
}

/*
 * Which of the window's groups have words that differ from the reference: bit r of mask
 * for group r.  All of them, where there is no reference.
 */
static inline void mt_compare_window(const struct mt_reference *reference, const __u64 *words,
				     __u64 start, __u64 end, __u64 shift, __u64 budget_bytes,
				     const struct mt_compare *compare, __u64 mask[2])
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES;
	__u64 at = start & ~(__u64)(MT_GROUP_BYTES - 1);
	int known = mt_reference_known(reference);

	mask[0] = 0;
	mask[1] = 0;
	while (at < end) {
		__u32 r = at / MT_GROUP_BYTES & (groups - 1);
		__u32 range = mt_group_range(start, end, r, groups);
		const __u64 *live = (const __u64 *)(at + shift), *kept = words + r * MT_GROUP_WORDS;
		__u64 run = 1, differs;

		if (range == MT_RANGE_FULL) {
			/* To the last full group, the reference's end, or the map word's. */
			run = (end - at) / MT_GROUP_BYTES;
			run = run < 64 - (r & 63) ? run : 64 - (r & 63);
			run = run < groups - r ? run : groups - r;
		}
		if (!known)
			differs = ~0ULL >> (64 - run);
		else if (range == MT_RANGE_FULL)
			differs = compare->groups(live, kept, run);
		else
			differs = mt_words_differ(live, kept, range);
		mask[r / 64] |= differs << (r & 63);
		at += run * MT_GROUP_BYTES;
	}
}

/*
 * The digest that the window has, computed from the reference's by difference, and the
 * mask for the probe.
 *
 * A group whose range moved is hashed anew although its words are the reference's; mask
 * does not name it: the encoder finds ranges that moved on its own.
 */
static inline __u64 mt_digest_window(const struct mt_reference *reference, const __u64 *words,
				     __u64 start, __u64 end, __u64 shift, __u32 epoch,
				     __u64 budget_bytes, const struct mt_compare *compare,
				     __u64 mask[2])
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES, w;
	int known = mt_reference_known(reference);
	__u64 old_start = reference->start, old_end = reference->end;
	__u64 sum = known ? reference->sum : 0;
	__u64 touched[2];

	mt_compare_window(reference, words, start, end, shift, budget_bytes, compare, mask);
	touched[0] = mask[0];
	touched[1] = mask[1];
	if (known) {
		for (w = 0; w < 2; w++)
			touched[w] |= mt_cover_moved(start, end, old_start, old_end, groups, w);
		mt_touch_edges(touched, reference->range, start, end, old_start, old_end, groups);
	}
	for (w = 0; w < 2; w++)
		for (; touched[w]; touched[w] &= touched[w] - 1) {
			__u32 r = w * 64 + __builtin_ctzll(touched[w]);
			__u32 range = mt_group_range(start, end, r, groups);

			if (known)
				sum -= mt_group_part(reference->range[r],
						     reference->group_digest[r], r);
			if (range)
				sum += mt_digest_part(
					mt_live_hash(
						(const __u64 *)(mt_group_address(start, r, groups) +
								shift),
						range),
					r);
		}
	return mt_digest_finish(start, end, epoch, sum);
}

/* The entry that has the digest, or -1. */
static inline int mt_dictionary_find(const __u64 *dictionary, __u64 digest)
{
	__u32 which, at, i;

	for (which = 0; which < 2; which++)
		for (i = 0; i < MT_DICTIONARY_WAYS; i++) {
			at = mt_dictionary_set(digest, which) + i;
			if (*(const volatile __u64 *)&dictionary[at] == digest)
				return at;
		}
	return -1;
}

/* mt_put_map() for a map of few bytes. */
static inline __u32 mt_put_bytes(__u8 **at, __u64 map)
{
	__u32 index = 0;

	while (map) {
		__u32 j = __builtin_ctzll(map) / 8;

		*(*at)++ = map >> 8 * j;
		index |= 1U << j;
		map &= ~(0xffULL << 8 * j);
	}
	return index;
}

/* mt_group_encode() of a group that is known to differ in the words of map only. */
static inline __u64 mt_group_encode_words(const __u64 *live, const __u64 *kept, __u64 map,
					  __u64 keep, __u32 *out)
{
	__u64 lows = 0, highs = 0;
	__u32 *at = out, low_index, high_index;
	__u8 *byte;

	for (; map; map &= map - 1) {
		__u32 i = __builtin_ctzll(map);
		__u64 x = live[i] ^ (kept[i] & keep), low = !!(__u32)x, high = !!(x >> 32);

		*at = x;
		at += low;
		lows |= low << i;
		*at = x >> 32;
		at += high;
		highs |= high << i;
	}
	if (at == out)
		return 0;
	byte = (__u8 *)at;
	low_index = mt_put_bytes(&byte, lows);
	high_index = mt_put_bytes(&byte, highs);
	return at - out + mt_end_maps((__u8 *)at, byte - (__u8 *)at, low_index, high_index);
}

/* Copies the words of a group that its range names to copy, the others become zero. */
static inline void mt_copy_group(__u64 *copy, const __u64 *from, __u32 range,
				 const struct mt_compare *compare)
{
	__u32 i;

	if (range == MT_RANGE_FULL) {
		compare->copy(copy, from);
		return;
	}
	for (i = 0; i < MT_RANGE_LO(range); i++)
		copy[i] = 0;
	for (; i < MT_RANGE_HI(range); i++)
		copy[i] = mt_live_word(from + i);
	for (; i < MT_GROUP_WORDS; i++)
		copy[i] = 0;
}

/* Copies touched group r, and hashes the copy. */
static inline void mt_read_group(const struct mt_reference *reference, struct mt_scratch *scratch,
				 __u32 r, __u64 shift, __u64 budget_bytes,
				 const struct mt_compare *compare)
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES,
	      range = mt_scratch_take_group(scratch, r, groups);
	__u64 *copy = mt_scratch_copies(scratch, budget_bytes) + r * MT_GROUP_WORDS, digest = 0;
	__u64 at = mt_group_address(scratch->record.start, r, groups) + shift;

	if (range) {
		mt_copy_group(copy, (const __u64 *)at, range, compare);
		digest = mt_group_hash(copy);
	}
	mt_scratch_hashed(scratch, reference, r, digest);
}

/*
 * Reads what of the window differs from the reference into the scratch, and returns the
 * window's digest.  seq: as it was before anything was read; where the reference has another
 * by now, all groups are read.  Nothing but the scratch moves.
 */
static inline __u64 mt_read_window(const struct mt_reference *reference, struct mt_scratch *scratch,
				   __u32 slot, __u64 seq, __u64 start, __u64 end, __u64 shift,
				   __u32 epoch, const __u64 mask[2], __u64 budget_bytes,
				   const struct mt_compare *compare, __u64 time_ns)
{
	__u64 all = seq != reference->seq ? ~0ULL : 0, touched;
	__u32 w;

	scratch->touched[0] = mask[0] | all;
	scratch->touched[1] = mask[1] | all;
	mt_scratch_begin(scratch, reference, slot, start, end, epoch, time_ns);
	mt_scratch_plan(scratch, reference, budget_bytes / MT_GROUP_BYTES);
	for (w = 0; w < 2; w++)
		for (touched = scratch->touched[w]; touched; touched &= touched - 1)
			mt_read_group(reference, scratch, w * 64 + __builtin_ctzll(touched), shift,
				      budget_bytes, compare);
	return mt_digest_finish(start, end, epoch, scratch->sum);
}

/*
 * Encodes what mt_read_window() read; returns the length in bytes of the record, which is at
 * &scratch->record.  Nothing but the scratch moves.
 */
static inline __u32 mt_encode_window(const struct mt_reference *reference, const __u64 *dictionary,
				     const __u64 *words, struct mt_scratch *scratch,
				     __u64 budget_bytes, const struct mt_compare *compare)
{
	__u32 *out = mt_scratch_out(scratch, budget_bytes), w, r;
	__u32 groups = budget_bytes / MT_GROUP_BYTES;
	__u64 touched, map, keep, n;

	for (w = 0; w < 2; w++)
		for (touched = scratch->touched[w]; touched; touched &= touched - 1) {
			const __u64 *copy, *kept;

			r = w * 64 + __builtin_ctzll(touched);
			if (!scratch->range[r])
				continue;
			copy = mt_scratch_copies(scratch, budget_bytes) + r * MT_GROUP_WORDS;
			kept = words + r * MT_GROUP_WORDS;
			map = mt_range_bits(scratch->range[r]);
			keep = mt_scratch_keep(scratch, reference, r, groups);
			if (keep)
				map &= compare->words(copy, kept);
			n = mt_group_encode_words(copy, kept, map, keep, out + scratch->n_out);
			if (!n && keep != scratch->keep)
				n = mt_group_encode_zero(out + scratch->n_out);
			mt_scratch_encoded(scratch, r, n);
		}
	return mt_scratch_finish(scratch, dictionary, budget_bytes);
}

/*
 * The record is on the ring: moves the reference to what was read of the window, and enters
 * its digest in the dictionary.
 */
static inline void mt_commit_window(struct mt_reference *reference, __u64 *dictionary, __u64 *words,
				    struct mt_scratch *scratch, __u64 budget_bytes,
				    const struct mt_compare *compare)
{
	const __u64 *copies = mt_scratch_copies(scratch, budget_bytes);
	__u32 groups = budget_bytes / MT_GROUP_BYTES, w, r, i;
	__u64 touched, keep;

	mt_reference_move_begin(reference, scratch);
	for (w = 0; w < 2; w++)
		for (touched = scratch->touched[w]; touched; touched &= touched - 1) {
			const __u64 *copy;
			__u32 range;
			__u64 *kept;

			r = w * 64 + __builtin_ctzll(touched);
			range = scratch->range[r];
			copy = copies + r * MT_GROUP_WORDS;
			kept = words + r * MT_GROUP_WORDS;
			/* One that the window does not have is not in the record. */
			keep = range ? mt_scratch_keep(scratch, reference, r, groups)
				     : scratch->keep;
			reference->range[r] = range;
			reference->group_digest[r] = scratch->group_digest[r];
			if (range == MT_RANGE_FULL) {
				compare->copy(kept, copy);
				continue;
			}
			for (i = 0; !keep && i < MT_GROUP_WORDS; i++)
				kept[i] = 0;
			for (i = MT_RANGE_LO(range); i < MT_RANGE_HI(range); i++)
				kept[i] = copy[i];
		}
	*(volatile __u64 *)&dictionary[scratch->record.entry] = scratch->record.digest;
	mt_reference_move_end(reference, scratch);
}

/* mt_reference_claim() with the dictionary: the registration probe's part, inline. */
static inline void mt_claim_reference(struct mt_reference *reference, __u64 *dictionary)
{
	__u32 i;

	for (i = 0; i < MT_DICTIONARY; i++)
		*(volatile __u64 *)&dictionary[i] = 0;
	mt_reference_claim(reference);
}
