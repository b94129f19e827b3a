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
 *   mt_scratch_plan()          which groups of the reference are touched
 *   mt_scratch_take_group(), mt_group_encode(), mt_scratch_encoded(), mt_group_hash(),
 *   mt_scratch_hashed()        for each touched group, its live words in scratch->live
 *   mt_scratch_finish()        digest and place in the dictionary; the record is complete
 *   -- the record goes on the ring; if it does not, nothing has moved --
 *   mt_get_map(), mt_group_commit()
 *                              for each touched group, the last first, between
 *   mt_reference_move_begin()  and mt_reference_move_end()
 *
 * bpf/capture.bpf.c walks them with one verifier-bounded call for a group;
 * wire/stack_encode.h is the walk for user space.  The decoder (collector/decode.c)
 * shares the ranges and the digest's mixing, not this walk, and hashes with libxxhash.
 *
 * The cost follows the touched groups, not the budget: a group whose words are as they were
 * can have another range only at an end of the window, old or new, or where one of both has
 * it and the other not.
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

/* The bits [lo, hi) of a row of bits, those of them that lie in its word w. */
static inline __attribute__((always_inline)) __u64 mt_bits_between(__u32 lo, __u32 hi, __u32 w)
{
	__u32 first = w * 64;

	lo = lo > first ? lo - first : 0;
	hi = hi > first ? hi - first : 0;
	if (lo >= 64 || lo >= hi)
		return 0;
	return (hi >= 64 ? ~0ULL : (1ULL << (hi & 63)) - 1) & ~0ULL << lo;
}

/* The groups that the window [start, end) has, those of word w. */
static inline __attribute__((always_inline)) __u64 mt_window_cover(__u64 start, __u64 end,
								   __u32 groups, __u32 w)
{
	__u32 first = start / MT_GROUP_BYTES & (groups - 1);
	__u32 past = first + (end - 1) / MT_GROUP_BYTES - start / MT_GROUP_BYTES + 1;

	if (past <= groups)
		return mt_bits_between(first, past, w);
	return mt_bits_between(first, groups, w) | mt_bits_between(0, past - groups, w);
}

/* The groups that only one of two windows has, those of word w. */
static inline __attribute__((always_inline)) __u64
mt_cover_moved(__u64 start, __u64 end, __u64 old_start, __u64 old_end, __u32 groups, __u32 w)
{
	return mt_window_cover(start, end, groups, w) ^
	       mt_window_cover(old_start, old_end, groups, w);
}

/* The group of the address at is touched if the window [start, end) has another range of it
 * than range[] says. */
static inline __attribute__((always_inline)) void
mt_touch_edge(__u64 touched[2], const __u16 *range, __u64 start, __u64 end, __u64 at, __u32 groups)
{
	__u32 r = at / MT_GROUP_BYTES & (groups - 1) & (MT_GROUPS_MAX - 1);

	if (mt_group_range(start, end, r, groups) != range[r])
		touched[r / 64] |= 1ULL << (r & 63);
}

/* The same of the groups at the ends of both windows; range[] is of the old one. */
static inline __attribute__((always_inline)) void
mt_touch_edges(__u64 touched[2], const __u16 *range, __u64 start, __u64 end, __u64 old_start,
	       __u64 old_end, __u32 groups)
{
	mt_touch_edge(touched, range, start, end, start, groups);
	mt_touch_edge(touched, range, start, end, end - 1, groups);
	mt_touch_edge(touched, range, start, end, old_start, groups);
	mt_touch_edge(touched, range, start, end, old_end - 1, groups);
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

/* 1 for a value that is not 0, without a branch; x below 2^63. */
static inline __attribute__((always_inline)) __u64 mt_is_set(__u64 x)
{
	x = 0 - x;
	MT_OPAQUE(x);
	x >>= 63;
	MT_OPAQUE(x);
	return x;
}

static inline __attribute__((always_inline)) __u64 mt_count_bits(__u64 x)
{
	x -= x >> 1 & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return x * 0x0101010101010101ULL >> 56;
}

/* Puts a map's bytes that are not 0 at at[*n] and on, moves *n behind them, and returns which
 * they are; writes up to at[*n]. */
static inline __attribute__((always_inline)) __u64 mt_put_map(__u8 *at, __u64 map, __u64 *n)
{
	__u64 index = 0;
	__u32 j;

	MT_NO_UNROLL
	for (j = 0; j < 8; j++) {
		__u64 byte = map >> 8 * j & 0xff, set = mt_is_set(byte);

		at[*n & 15] = byte;
		*n += set;
		index |= set << j;
		MT_OPAQUE(index);
	}
	return index;
}

/* The map that mt_put_map() put at at[*n] and on; moves *n behind it. */
static inline __attribute__((always_inline)) __u64 mt_get_map(const __u8 *at, __u64 index, __u64 *n)
{
	__u64 map = 0;
	__u32 j;

	MT_NO_UNROLL
	for (j = 0; j < 8; j++) {
		__u64 set = index >> j & 1;

		MT_OPAQUE(set);
		map |= (at[*n & 15] & (0 - set)) << 8 * j;
		*n += set;
	}
	return map;
}

/* Ends the maps at at, which have so many bytes; returns the halves that they take. */
static inline __attribute__((always_inline)) __u64 mt_end_maps(__u8 *at, __u64 bytes,
							       __u64 low_index, __u64 high_index)
{
	bytes = (bytes + 5) & 0x1c;
	at[bytes - 2] = low_index;
	at[bytes - 1] = high_index;
	return bytes / 4;
}

/* Ends an encoded group behind its n halves; returns how many halves it has with the maps. */
static inline __attribute__((always_inline)) __u64 mt_put_maps(__u32 *out, __u64 n, __u64 lows,
							       __u64 highs)
{
	__u8 *at = (__u8 *)(out + n);
	__u64 bytes = 0, low_index = mt_put_map(at, lows, &bytes);
	__u64 high_index = mt_put_map(at, highs, &bytes);

	return n + mt_end_maps(at, bytes, low_index, high_index);
}

/* The halves that the maps of a group take, by their indices: its last two bytes. */
static inline __attribute__((always_inline)) __u64 mt_map_halves(__u64 low_index, __u64 high_index)
{
	return (mt_count_bits(low_index | high_index << 8) + 5) / 4;
}

/*
 * XORs the words of live that bits names with those of kept (keep ~0) or with zero
 * (keep 0), and puts down what is not 0 as wire/stack_record.h has it, at out, with room for
 * MT_ENCODED_HALVES.  Returns how many halves that takes; 0: nothing differs.  The words of
 * live that bits does not name become zero: live is then what mt_group_hash() takes.
 */
static inline __attribute__((always_inline)) __u64
mt_group_encode(__u64 *live, const __u64 *kept, __u64 bits, __u64 keep, __u32 *out)
{
	__u64 n = 0, lows = 0, highs = 0;
	__u32 i;

	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i++) {
		__u64 in = 0 - (bits >> i & 1);
		__u64 word, x, set;

		MT_OPAQUE(in);
		word = live[i] & in;
		live[i] = word;
		x = word ^ (kept[i] & in & keep);
		out[n & (2 * MT_GROUP_WORDS - 1)] = x;
		set = mt_is_set((__u32)x);
		n += set;
		lows |= set << i;
		MT_OPAQUE(lows);
		out[n & (2 * MT_GROUP_WORDS - 1)] = x >> 32;
		set = mt_is_set(x >> 32);
		n += set;
		highs |= set << i;
		MT_OPAQUE(highs);
	}
	/* More than that it can not be; the verifier does not know. */
	if (!n || n > 2 * MT_GROUP_WORDS)
		return 0;
	return mt_put_maps(out, n, lows, highs);
}

/* A group that is all zero against zero: no halves, empty maps.  Returns what it takes. */
static inline __attribute__((always_inline)) __u64 mt_group_encode_zero(__u32 *out)
{
	*out = 0;
	return 1;
}

/*
 * Brings kept up to date from the halves that the maps name; with keep 0 the other words
 * become zero.  Reads as many halves as a group can have, whatever the maps say.
 */
static inline __attribute__((always_inline)) void
mt_group_commit(__u64 *kept, __u64 lows, __u64 highs, const __u32 *xors, __u64 keep)
{
	__u64 n = 0;
	__u32 i;

	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i++) {
		__u64 low = lows >> i & 1, high = highs >> i & 1, x;

		MT_OPAQUE(low);
		MT_OPAQUE(high);
		x = xors[n & (2 * MT_GROUP_WORDS - 1)] & (0 - low);
		n += low;
		x |= (xors[n & (2 * MT_GROUP_WORDS - 1)] & (0 - high)) << 32;
		n += high;
		kept[i] = (kept[i] & keep) ^ x;
	}
}

/* Is there a window to encode against? */
static inline __attribute__((always_inline)) int
mt_reference_known(const struct mt_reference *reference)
{
	return reference->digest && !(reference->seq & 1);
}

/*
 * Begins a record of the window [start, end) against the reference.  The caller has checked
 * mt_window_valid(), and has set scratch->touched: all ones, or the groups of which it knows
 * that their words differ from those of this very reference.  An odd seq is a move that never
 * ended (a signal handler left it by longjmp): that reference is void, and its number is not
 * used again.
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
	scratch->mask[0] = 0;
	scratch->mask[1] = 0;
	scratch->end = end;
	scratch->n_out = 0;
	scratch->resync = resync;

	record->slot = slot;
	record->kind = keep ? MT_STACK_DELTA : MT_STACK_KEY;
	record->seq = scratch->seq;
	record->generation = reference->generation;
	record->window_words = (end - start) / 8;
	record->start = start;
	record->epoch = epoch;
	record->ref_digest = reference->digest & keep;
	record->time = time_ns >> MT_STACK_TIME_SHIFT;
}

/* Word w of touched: the groups that only one of both windows has; in a key frame all. */
static inline __attribute__((always_inline)) void
mt_scratch_plan_cover(struct mt_scratch *scratch, const struct mt_reference *reference,
		      __u32 groups, __u32 w)
{
	__u64 touched = ~0ULL;

	if (scratch->keep)
		touched = scratch->touched[w] | mt_cover_moved(scratch->record.start, scratch->end,
							       reference->start, reference->end,
							       groups, w);
	scratch->touched[w] = touched & mt_bits_between(0, groups, w);
}

/*
 * Finds the groups that are touched: those that were said to be, those whose range moved,
 * in a key frame all.
 */
static inline __attribute__((always_inline)) void
mt_scratch_plan(struct mt_scratch *scratch, const struct mt_reference *reference, __u32 groups)
{
	mt_scratch_plan_cover(scratch, reference, groups, 0);
	mt_scratch_plan_cover(scratch, reference, groups, 1);
	if (scratch->keep)
		mt_touch_edges(scratch->touched, reference->range, scratch->record.start,
			       scratch->end, reference->start, reference->end, groups);
}

/* Takes touched group r up; returns its range, 0: the window does not have it any more. */
static inline __attribute__((always_inline)) __u32 mt_scratch_take_group(struct mt_scratch *scratch,
									 __u32 r, __u32 groups)
{
	__u32 range = mt_group_range(scratch->record.start, scratch->end, r, groups);

	scratch->range[r] = range;
	return range;
}

/*
 * ~0 if group r is encoded against the reference's; 0 if against zero: in a key frame, and
 * where the reference's window has the group of another address there, with which it has
 * nothing in common.  Such a group is in the record even if it is all zero.
 */
static inline __attribute__((always_inline)) __u64
mt_scratch_keep(const struct mt_scratch *scratch, const struct mt_reference *reference, __u32 r,
		__u32 groups)
{
	if (reference->range[r] && mt_group_address(scratch->record.start, r, groups) !=
					   mt_group_address(reference->start, r, groups))
		return 0;
	return scratch->keep;
}

/* The digest gets another part of group r: digest is its hash, or 0 where the window does not
 * have it any more. */
static inline __attribute__((always_inline)) void
mt_scratch_hashed(struct mt_scratch *scratch, const struct mt_reference *reference, __u32 r,
		  __u64 digest)
{
	__u32 old_range = reference->range[r] & (__u32)scratch->keep;

	scratch->group_digest[r] = digest;
	scratch->sum += mt_group_part(scratch->range[r], digest, r) -
			mt_group_part(old_range, reference->group_digest[r], r);
}

/* Group r was encoded, which took n halves; 0: no word differs, it is not in the record. */
static inline __attribute__((always_inline)) void mt_scratch_encoded(struct mt_scratch *scratch,
								     __u32 r, __u64 n)
{
	scratch->mask[r / 64] |= (__u64) !!n << (r & 63);
	scratch->n_out += n;
}

/* The first entry of either set that a digest can be in; which: 0 or 1. */
static inline __attribute__((always_inline)) __u32 mt_dictionary_set(__u64 digest, __u32 which)
{
	return (digest >> 7 * which & (MT_DICTIONARY_SETS - 1)) * MT_DICTIONARY_WAYS;
}

/*
 * The entry for a digest: the first of both sets that has it or is free, or another, which one by
 * the luck of the record's number.  Two may have it, where one in front was freed meanwhile.
 */
static inline __attribute__((always_inline)) __u32 mt_dictionary_place(const __u64 *dictionary,
								       __u64 digest, __u64 seq)
{
	__u64 way = seq, second;
	__u32 i;

	MT_NO_UNROLL
	for (i = 2 * MT_DICTIONARY_WAYS; i-- > 0;) {
		__u32 at = mt_dictionary_set(digest, i / MT_DICTIONARY_WAYS) +
			   (i & (MT_DICTIONARY_WAYS - 1));
		__u64 has = *(const volatile __u64 *)&dictionary[at], differs = has ^ digest;
		__u64 other;

		/* Neither free nor the digest: stay. */
		other = mt_is_set(has >> 1 | (has & 1)) & mt_is_set(differs >> 1 | (differs & 1));
		way = (way & (0 - other)) | (i & (other - 1));
	}
	second = 0 - (way / MT_DICTIONARY_WAYS & 1);
	return ((mt_dictionary_set(digest, 0) & ~second) |
		(mt_dictionary_set(digest, 1) & second)) +
	       (way & (MT_DICTIONARY_WAYS - 1));
}

/* Completes the record; returns its length in bytes. */
static inline __attribute__((always_inline)) __u32
mt_scratch_finish(struct mt_scratch *scratch, const __u64 *dictionary, __u64 budget_bytes)
{
	struct mt_stack_record *record = &scratch->record;
	__u64 head_bytes = mt_stack_head_bytes(budget_bytes), mask1 = 0;

	record->digest = mt_digest_finish(record->start, scratch->end, record->epoch, scratch->sum);
	record->entry = mt_dictionary_place(dictionary, record->digest, scratch->seq);
	scratch->cursor = scratch->n_out;
	record->pad_halves = scratch->n_out & 1;
	record->len_words = (head_bytes + scratch->n_out * 4 + 7) / 8;
	record->mask[0] = scratch->mask[0];
	if (head_bytes == sizeof(*record)) {
		mask1 = scratch->mask[1];
		record->mask[1] = mask1;
	}
	record->check = mt_stack_check(record, mask1);
	return record->len_words * 8;
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
	reference->entry = record->entry;
	reference->sum = scratch->sum;
	reference->start = record->start;
	reference->end = scratch->end;
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
