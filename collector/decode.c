/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * decode.c - see decode.h for the contract
 *
 * Invariants
 *   - Each byte of a record is read once, and checked after it was read: maps are within
 *     their group's range, the halves that they name within the record.
 *   - frame.digest is 0 from before a frame is changed until its digest was verified, so
 *     that a record that fails half-way leaves a frame that no delta can name.
 *   - group_digest and range describe words; sum is the sum of their parts.  So the cost
 *     follows the groups that changed, as it does for the encoder: a group that the record
 *     does not name has another range only at an end of the window, old or new, or where one
 *     of both windows has it and the other not.
 */
#include "collector/decode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/cleanup.h"
#include "wire/reference.h"
#include "wire/stack_delta.h"

/* A window and what is known of it. */
struct frame {
	uint64_t digest; /* 0: void */
	uint64_t sum;
	uint64_t start, end; /* both 0: nothing was ever decoded into it */
	uint64_t group_digest[MT_GROUPS_MAX];
	uint16_t range[MT_GROUPS_MAX];
	uint64_t words[];
};

struct mt_decoder {
	uint32_t budget_bytes;
	uint32_t groups;
	uint16_t generation; /* of the reference */
	struct frame *reference;
	uint64_t *aside; /* the words of a raw window; NULL at first */
};

/* What is left of a record's body: so many halves of words, which end there. */
struct cursor {
	const char *end;
	size_t n_halves;
};

int mt_decoder_new(uint32_t budget_bytes, struct mt_decoder **ret)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;

	if (budget_bytes < MT_BUDGET_MIN_BYTES || budget_bytes > MT_BUDGET_MAX_BYTES ||
	    budget_bytes & (budget_bytes - 1))
		return -EINVAL;
	decoder = calloc(1, sizeof(*decoder));
	if (!decoder)
		return -ENOMEM;
	decoder->budget_bytes = budget_bytes;
	decoder->groups = budget_bytes / MT_GROUP_BYTES;
	decoder->reference = calloc(1, sizeof(struct frame) + budget_bytes);
	if (!decoder->reference)
		return -ENOMEM;
	*ret = mt_take_ptr(decoder);
	return 0;
}

void mt_decoder_free(struct mt_decoder *decoder)
{
	if (!decoder)
		return;
	free(decoder->reference);
	free(decoder->aside);
	free(decoder);
}

/* Whether the mask names groups that the budget does not have. */
static bool mask_exceeds(const __u64 mask[2], uint32_t groups)
{
	if (groups > 64)
		return false;
	return mask[1] || (groups < 64 && mask[0] >> groups);
}

/* Whether kind and name go together: a digest, in one of the entries that it can be in; or
 * none. */
static bool named_rightly(const struct mt_stack_record *head)
{
	uint32_t set;

	if (head->kind == MT_STACK_RAW)
		return !head->digest && !head->ref_digest && !head->pad_halves && !head->mask[0] &&
		       !head->mask[1];
	if (head->kind != MT_STACK_DELTA && head->kind != MT_STACK_KEY)
		return false;
	set = head->entry & ~(MT_DICTIONARY_WAYS - 1u);
	return head->digest && (set == mt_dictionary_set(head->digest, 0) ||
				set == mt_dictionary_set(head->digest, 1));
}

/* Of two lengths that are known, so that it is a few moves. */
static void take_head(struct mt_stack_record *head, const void *bytes, size_t head_bytes)
{
	const size_t less = sizeof(*head) - sizeof(head->mask[1]);

	if (head_bytes == sizeof(*head)) {
		memcpy(head, bytes, sizeof(*head));
	} else {
		memcpy(head, bytes, less);
		head->mask[1] = 0;
	}
}

int mt_decode_head(uint32_t budget_bytes, const void *bytes, size_t len,
		   struct mt_stack_record *ret)
{
	size_t head_bytes = mt_stack_head_bytes(budget_bytes), record_bytes;
	struct mt_stack_record head;

	if (len < head_bytes)
		return -EBADMSG;
	take_head(&head, bytes, head_bytes);
	record_bytes = (size_t)head.len_words * 8;
	if (record_bytes < head_bytes || record_bytes > len ||
	    record_bytes > mt_stack_record_max_bytes(budget_bytes) || head.pad_halves > 1 ||
	    head.pad_halves * 4u > record_bytes - head_bytes ||
	    head.check != mt_stack_check(&head, head.mask[1]))
		return -EBADMSG;
	if (!mt_window_valid(head.start, mt_stack_end(&head), budget_bytes) ||
	    mask_exceeds(head.mask, budget_bytes / MT_GROUP_BYTES) || !named_rightly(&head))
		return -EBADMSG;
	*ret = head;
	return 0;
}

/* The hash of a group whose words outside the range count as zero. */
static uint64_t hash_group(const uint64_t *words, uint32_t range)
{
	uint64_t inside[MT_GROUP_WORDS] = { 0 };
	uint32_t lo = MT_RANGE_LO(range), hi = MT_RANGE_HI(range);

	if (range == MT_RANGE_FULL)
		return XXH64(words, MT_GROUP_BYTES, 0);
	memcpy(inside + lo, words + lo, (hi - lo) * sizeof(*words));
	return XXH64(inside, sizeof(inside), 0);
}

/* A map of a group: its bytes at *at, the others 0. */
static uint64_t take_map(const uint8_t **at, uint32_t index)
{
	uint64_t map = 0;

	for (; index; index &= index - 1)
		map |= (uint64_t) * (*at)++ << 8 * __builtin_ctz(index);
	return map;
}

static inline uint32_t half_at(const char *halves, size_t i)
{
	uint32_t half;

	memcpy(&half, halves + i * sizeof(half), sizeof(half));
	return half;
}

/* XORs a group with what the record has of it, which ends where the cursor is. */
static int apply_xor(uint64_t *words, uint32_t range, struct cursor *cursor)
{
	uint8_t maps[4 * MT_ENCODED_MAP_HALVES];
	const uint8_t *index = maps + sizeof(maps) - 2, *at;
	uint64_t lows, highs, named;
	size_t n_maps, n, i = 0;
	const char *halves;

	if (!cursor->n_halves)
		return -EBADMSG;
	/* As many bytes as maps have at most; a head, which is more, is before the first. */
	memcpy(maps, cursor->end - sizeof(maps), sizeof(maps));
	n_maps = mt_map_halves(index[0], index[1]);
	if (n_maps > cursor->n_halves)
		return -EBADMSG;
	cursor->n_halves -= n_maps;
	cursor->end -= n_maps * 4;
	at = maps + sizeof(maps) - n_maps * 4;
	lows = take_map(&at, index[0]);
	highs = take_map(&at, index[1]);
	named = lows | highs;
	n = (size_t)mt_count_bits(lows) + (size_t)mt_count_bits(highs);
	if (named & ~mt_range_bits(range) || n > cursor->n_halves)
		return -EBADMSG;
	cursor->n_halves -= n;
	cursor->end -= n * 4;
	halves = cursor->end;
	/* Which half is there follows from the stack's words: no branch depends on it.  One half
	 * behind the last may be read, for nothing: the maps are there. */
	for (; named; named &= named - 1) {
		int word = __builtin_ctzll(named);
		uint64_t low = lows >> word & 1, high = highs >> word & 1, x;

		x = half_at(halves, i) & (0 - low);
		i += low;
		x |= (half_at(halves, i) & (0 - high)) << 32;
		i += high;
		words[word] ^= x;
	}
	return 0;
}

/* The groups that the record changes, in words or in range. */
static void plan(const struct frame *frame, const struct mt_stack_record *head, uint32_t groups,
		 __u64 touched[2])
{
	uint64_t end = mt_stack_end(head);
	bool known = frame->end != 0;

	touched[0] = head->mask[0];
	touched[1] = head->mask[1];
	if (head->start == frame->start && end == frame->end)
		return;
	for (uint32_t w = 0; w * 64 < groups; w++)
		touched[w] |= known ? mt_cover_moved(head->start, end, frame->start, frame->end,
						     groups, w)
				    : mt_window_cover(head->start, end, groups, w);
	if (known)
		mt_touch_edges(touched, frame->range, head->start, end, frame->start, frame->end,
			       groups);
}

static int apply_group(struct frame *frame, uint32_t groups, uint32_t r,
		       const struct mt_stack_record *head, struct cursor *cursor, uint64_t *sum)
{
	uint32_t range = mt_group_range(head->start, mt_stack_end(head), r, groups);
	uint64_t *words = frame->words + r * MT_GROUP_WORDS;
	int err;

	if (head->mask[r / 64] >> r % 64 & 1) {
		/* What was there was of another address: the group is against zero. */
		if (frame->range[r] && mt_group_address(head->start, r, groups) !=
					       mt_group_address(frame->start, r, groups))
			memset(words, 0, MT_GROUP_BYTES);
		err = apply_xor(words, range, cursor);
		if (err)
			return err;
	}
	*sum -= mt_group_part(frame->range[r], frame->group_digest[r], r);
	frame->range[r] = (uint16_t)range;
	frame->group_digest[r] = range ? hash_group(words, range) : 0;
	*sum += mt_group_part(range, frame->group_digest[r], r);
	return 0;
}

/* Brings the frame from its own window to the record's. */
static int apply(struct frame *frame, uint32_t groups, const struct mt_stack_record *head,
		 struct cursor *cursor)
{
	uint64_t sum = frame->sum;
	__u64 touched[2];
	int err;

	plan(frame, head, groups, touched);
	frame->digest = 0;
	/* A group is read from its end: the last is the first. */
	for (uint32_t w = 2; w-- > 0;) {
		while (touched[w]) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(touched[w]);

			err = apply_group(frame, groups, w * 64 + bit, head, cursor, &sum);
			if (err)
				return err;
			touched[w] &= ~(1ULL << bit);
		}
	}
	if (cursor->n_halves)
		return -EBADMSG;
	frame->sum = sum;
	frame->start = head->start;
	frame->end = mt_stack_end(head);
	if (mt_digest_finish(frame->start, frame->end, head->epoch, sum) != head->digest)
		return -EILSEQ;
	frame->digest = head->digest;
	return 0;
}

static int decode_delta(struct mt_decoder *decoder, const struct mt_stack_record *head,
			struct cursor *cursor)
{
	struct frame *reference = decoder->reference;

	if (!reference->digest || head->ref_digest != (uint32_t)reference->digest ||
	    head->generation != decoder->generation)
		return -ESTALE;
	return apply(reference, decoder->groups, head, cursor);
}

static int decode_key(struct mt_decoder *decoder, const struct mt_stack_record *head,
		      struct cursor *cursor)
{
	if (head->ref_digest)
		return -EBADMSG;
	memset(decoder->reference, 0, sizeof(struct frame) + decoder->budget_bytes);
	decoder->generation = head->generation;
	return apply(decoder->reference, decoder->groups, head, cursor);
}

/*
 * Copies one block of a raw window from at to where the window's words lie; returns its hash.
 * Only the block in which the words' end falls, and the last, are in pieces.
 */
static uint64_t take_block(const struct mt_decoder *decoder, uint64_t address, const char *at,
			   size_t bytes)
{
	size_t offset = address & (decoder->budget_bytes - 1);
	char *words = (char *)decoder->aside, block[MT_GROUP_BYTES] = { 0 };
	size_t first = decoder->budget_bytes - offset;

	if (bytes == MT_GROUP_BYTES && first >= bytes) {
		memcpy(words + offset, at, bytes);
		return XXH64(words + offset, bytes, 0);
	}
	first = first < bytes ? first : bytes;
	memcpy(block, at, bytes);
	memcpy(words + offset, block, first);
	memcpy(words, block + first, bytes - first);
	return XXH64(block, sizeof(block), 0);
}

static int decode_raw(struct mt_decoder *decoder, const struct mt_stack_record *head,
		      const char *at, size_t n_halves)
{
	size_t left = (size_t)head->window_words * 8;
	uint64_t address = head->start, digest, sum = 0, k;

	if (n_halves != ((size_t)head->window_words + 1) * 2)
		return -EBADMSG;
	if (!decoder->aside)
		decoder->aside = malloc(decoder->budget_bytes);
	if (!decoder->aside)
		return -ENOMEM;
	for (k = 0; left; k++) {
		size_t bytes = left < MT_GROUP_BYTES ? left : MT_GROUP_BYTES;

		sum += mt_digest_part(take_block(decoder, address, at, bytes), k);
		at += bytes;
		address += bytes;
		left -= bytes;
	}
	memcpy(&digest, at, sizeof(digest));
	if (mt_digest_finish(head->start, mt_stack_end(head), head->epoch, sum) != digest)
		return -EILSEQ;
	return 0;
}

int mt_decode_window(struct mt_decoder *decoder, const struct mt_stack_record *head,
		     const void *bytes, struct mt_window *ret)
{
	size_t head_bytes = mt_stack_head_bytes(decoder->budget_bytes);
	struct cursor cursor;
	uint64_t end;
	int err;

	cursor.n_halves = ((size_t)head->len_words * 8 - head_bytes) / 4 - head->pad_halves;
	cursor.end = (const char *)bytes + head_bytes + cursor.n_halves * 4;

	if (head->kind == MT_STACK_DELTA)
		err = decode_delta(decoder, head, &cursor);
	else if (head->kind == MT_STACK_KEY)
		err = decode_key(decoder, head, &cursor);
	else
		err = decode_raw(decoder, head, (const char *)bytes + head_bytes, cursor.n_halves);
	if (err)
		return err;
	end = mt_stack_end(head);
	ret->start = head->start;
	ret->end = end;
	ret->words = head->kind == MT_STACK_RAW ? decoder->aside : decoder->reference->words;
	ret->mask = decoder->budget_bytes / 8 - 1;
	ret->bottom = end - (head->start & ~(uint64_t)(MT_GROUP_BYTES - 1)) < decoder->budget_bytes;
	return 0;
}

int mt_decode_record(struct mt_decoder *decoder, const void *bytes, size_t len,
		     struct mt_window *ret)
{
	struct mt_stack_record head;
	int err = mt_decode_head(decoder->budget_bytes, bytes, len, &head);

	return err ? err : mt_decode_window(decoder, &head, bytes, ret);
}
