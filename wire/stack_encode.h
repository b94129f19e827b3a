/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_encode.h - capture in user space: a live window becomes a stack record
 *
 * Contract
 *   Input:     a window that mt_window_valid() accepts, on readable memory, or a readable
 *              copy of it: shift is what lies between a word's address and where it is read,
 *              0 for the window itself.  Words outside the window are not read.  budget_bytes a power of two,
 *              4 to 64 KiB.  reference, dictionary and words as wire/reference.h lays them
 *              out, trusted as the process's own memory is.
 *   Ownership: all memory is the caller's; mt_encode_window() leaves the record in the
 *              scratch, complete, at &scratch->record.
 *   Threads:   one capture at a time in a slot; one that interrupts another there (a
 *              signal handler) must not use its scratch.
 *   Bounds:    no allocation, system call or call; frames of a few words.  Compile with
 *              -fno-tree-loop-distribute-patterns where memset() must not be called.
 *
 * How the shim uses it, with seq read before anything else:
 *
 *   digest = mt_digest_window(..., mask);
 *   if (mt_dictionary_has(dictionary, digest) and seq, resync_asked have not moved)
 *           the event names digest % MT_DICTIONARY: nothing to send
 *   else, eBPF: the probe, with seq and mask
 *   else, inline: mt_encode_window(..., seq, mask); the record goes on the ring;
 *           then mt_commit_window().  The window's digest is scratch->record.digest: the
 *           words were read again, and other threads may have written them.
 */
#include <linux/types.h>

#include "wire/digest.h"
#include "wire/reference.h"
#include "wire/scratch.h"
#include "wire/stack_delta.h"

/*
 * Compares groups (1 to 64) that lie one after the other: bit i of the result is set when
 * the i-th group of live differs from the i-th of kept.
 */
typedef __u64 (*mt_groups_differ_fn)(const __u64 *live, const __u64 *kept, __u64 groups);

/* A word of the stack, whatever type it has for whom it belongs to. */
typedef __u64 __attribute__((may_alias)) mt_any_word;

static inline __u64 mt_live_word(const __u64 *at)
{
	return *(const volatile mt_any_word *)at;
}

/* The portable mt_groups_differ_fn. */
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
				     mt_groups_differ_fn differ, __u64 mask[2])
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
			differs = differ(live, kept, run);
		else
			differs = mt_words_differ(live, kept, range);
		mask[r / 64] |= differs << (r & 63);
		at += run * MT_GROUP_BYTES;
	}
}

/*
 * The digest that the window has, computed from the reference's by difference, and the
 * mask for the probe or for mt_encode_window().
 *
 * A group whose range moved is hashed anew although its words are the reference's; mask
 * does not name it: the encoder finds ranges that moved on its own.
 */
static inline __u64 mt_digest_window(const struct mt_reference *reference, const __u64 *words,
				     __u64 start, __u64 end, __u64 shift, __u32 epoch,
				     __u64 budget_bytes, mt_groups_differ_fn differ, __u64 mask[2])
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES, r;
	__u64 base = start & ~(__u64)(MT_GROUP_BYTES - 1), at;
	int known = mt_reference_known(reference);
	__u64 sum = known ? reference->sum : 0;

	mt_compare_window(reference, words, start, end, shift, budget_bytes, differ, mask);
	for (at = base; at < base + budget_bytes; at += MT_GROUP_BYTES) {
		__u32 range = 0, old_range;

		r = at / MT_GROUP_BYTES & (groups - 1);
		if (at < end)
			range = at >= start && end - at >= MT_GROUP_BYTES
					? MT_RANGE_FULL
					: mt_group_range(start, end, r, groups);
		old_range = known ? reference->range[r] : 0;
		if (range == old_range && !(mask[r / 64] >> (r & 63) & 1))
			continue;
		sum -= mt_group_part(old_range, reference->group_digest[r], r);
		if (range)
			sum += mt_digest_part(mt_live_hash((const __u64 *)(at + shift), range), r);
	}
	return mt_digest_finish(start, end, epoch, sum);
}

/* Is the window with this digest one that was emitted? */
static inline int mt_dictionary_has(const __u64 *dictionary, __u64 digest)
{
	return *(const volatile __u64 *)&dictionary[digest % MT_DICTIONARY] == digest;
}

/*
 * Encodes the window into the scratch; returns the length in bytes of the record, which is
 * at &scratch->record.  seq, mask: as read and computed before; where the reference has
 * another seq by now, all groups are encoded.  Nothing but the scratch moves.
 */
static inline __u32 mt_encode_window(const struct mt_reference *reference, const __u64 *words,
				     struct mt_scratch *scratch, __u32 slot, __u64 seq, __u64 start,
				     __u64 end, __u64 shift, __u32 epoch, const __u64 mask[2],
				     __u64 budget_bytes, __u64 time_ns)
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES, r, i;
	__u64 all = seq != reference->seq ? ~0ULL : 0;

	scratch->touched[0] = mask[0] | all;
	scratch->touched[1] = mask[1] | all;
	mt_scratch_begin(scratch, reference, slot, start, end, epoch, time_ns);
	for (r = 0; r < groups; r++) {
		__u64 *out = mt_scratch_out(scratch) + scratch->n_out;
		const __u64 *live;
		__u64 n, bits;
		__u32 range;

		if (!mt_scratch_plan_group(scratch, reference, r, groups))
			continue;
		range = scratch->range[r];
		if (!range) {
			mt_scratch_account(scratch, reference, r, 0, 0);
			continue;
		}
		live = (const __u64 *)(mt_group_address(start, r, groups) + shift);
		for (i = MT_RANGE_LO(range); i < MT_RANGE_HI(range); i++)
			scratch->live[i] = mt_live_word(live + i);
		bits = mt_range_bits(range);
		n = mt_group_encode(scratch->live, words + r * MT_GROUP_WORDS, bits, scratch->keep,
				    out);
		mt_scratch_account(scratch, reference, r, n, mt_group_hash(scratch->live));
	}
	mt_scratch_finish(scratch);
	return scratch->record.len;
}

/* The record is on the ring: moves the reference, and enters its digest in the dictionary. */
static inline void mt_commit_window(struct mt_reference *reference, __u64 *dictionary, __u64 *words,
				    struct mt_scratch *scratch, __u64 budget_bytes)
{
	__u32 groups = budget_bytes / MT_GROUP_BYTES, r;

	mt_reference_move_begin(reference, scratch);
	for (r = 0; r < groups; r++)
		if (scratch->touched[r / 64] >> (r & 63) & 1)
			mt_scratch_commit_group(scratch, reference, words + r * MT_GROUP_WORDS,
						mt_scratch_out(scratch) + scratch->cursor, r);
	*(volatile __u64 *)&dictionary[scratch->record.digest % MT_DICTIONARY] = scratch->record
											 .digest;
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
