/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * decode.c - see decode.h for the contract
 *
 * Invariants
 *   - Each byte of a record is read once, and checked after it was read: a bitmap is within
 *     its group's range, its words within the record.
 *   - frame.digest is 0 from before a frame is changed until its digest was verified, so
 *     that a record that fails half-way leaves a frame that no delta can name.
 *   - group_digest and range describe words; sum is the sum of their parts.  So the cost
 *     follows the groups that changed, as it does for the encoder.
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
	uint64_t start, end;
	uint64_t group_digest[MT_GROUPS_MAX];
	uint16_t range[MT_GROUPS_MAX];
	uint64_t words[];
};

struct mt_decoder {
	uint32_t budget_bytes;
	uint32_t groups;
	uint32_t generation; /* of the reference */
	struct frame *reference;
	struct frame *aside; /* for what does not become the reference; NULL at first */
};

/* What is left of a record. */
struct cursor {
	const char *at;
	size_t n_words;
};

static struct frame *frame_new(uint32_t budget_bytes)
{
	return calloc(1, sizeof(struct frame) + budget_bytes);
}

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
	decoder->reference = frame_new(budget_bytes);
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

static uint64_t take_word(struct cursor *cursor)
{
	uint64_t word;

	memcpy(&word, cursor->at, sizeof(word));
	cursor->at += sizeof(word);
	cursor->n_words--;
	return word;
}

/* Whether the mask names groups that the budget does not have. */
static bool mask_exceeds(const __u64 mask[2], uint32_t groups)
{
	if (groups > 64)
		return false;
	return mask[1] || (groups < 64 && mask[0] >> groups);
}

/* Copies the head and checks what does not depend on the decoder's reference. */
static int take_head(const struct mt_decoder *decoder, const void *bytes, size_t len,
		     struct mt_stack_record *ret)
{
	struct mt_stack_record head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (head.len != len || len % 8 ||
	    len > MT_STACK_RECORD_MAX_BYTES((size_t)decoder->budget_bytes))
		return -EBADMSG;
	if (!mt_window_valid(head.start, head.end, decoder->budget_bytes) ||
	    mask_exceeds(head.mask, decoder->groups))
		return -EBADMSG;
	*ret = head;
	return 0;
}

static void frame_clear(struct frame *frame, uint32_t budget_bytes)
{
	memset(frame, 0, sizeof(*frame) + budget_bytes);
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

/* XORs a group with what the record has of it. */
static int apply_xor(uint64_t *words, uint32_t range, struct cursor *cursor)
{
	uint64_t bitmap;

	if (!cursor->n_words)
		return -EBADMSG;
	bitmap = take_word(cursor);
	if (bitmap & ~mt_range_bits(range) ||
	    (size_t)__builtin_popcountll(bitmap) > cursor->n_words)
		return -EBADMSG;
	for (; bitmap; bitmap &= bitmap - 1)
		words[__builtin_ctzll(bitmap)] ^= take_word(cursor);
	return 0;
}

/* Brings the frame from its own window to the record's. */
static int apply(struct frame *frame, uint32_t groups, const struct mt_stack_record *head,
		 struct cursor *cursor)
{
	/* Where the window did not move, no range did. */
	bool moved = head->start != frame->start || head->end != frame->end;
	uint64_t sum = frame->sum;
	uint32_t r;
	int err;

	frame->digest = 0;
	for (r = 0; r < groups; r++) {
		uint64_t *words = frame->words + r * MT_GROUP_WORDS;
		bool differs = head->mask[r / 64] >> (r % 64) & 1;
		uint32_t old_range = frame->range[r], range = old_range;

		if (moved)
			range = mt_group_range(head->start, head->end, r, groups);
		if (!differs && range == old_range)
			continue;
		if (differs) {
			err = apply_xor(words, range, cursor);
			if (err)
				return err;
		}
		sum -= mt_group_part(old_range, frame->group_digest[r], r);
		frame->range[r] = range;
		frame->group_digest[r] = range ? hash_group(words, range) : 0;
		sum += mt_group_part(range, frame->group_digest[r], r);
	}
	if (cursor->n_words)
		return -EBADMSG;
	frame->sum = sum;
	frame->start = head->start;
	frame->end = head->end;
	if (mt_digest_finish(head->start, head->end, head->epoch, sum) != head->digest)
		return -EILSEQ;
	frame->digest = head->digest;
	return 0;
}

/* The frame for windows that do not become the reference, empty. */
static int frame_aside(struct mt_decoder *decoder, struct frame **ret)
{
	if (decoder->aside)
		frame_clear(decoder->aside, decoder->budget_bytes);
	else
		decoder->aside = frame_new(decoder->budget_bytes);
	if (!decoder->aside)
		return -ENOMEM;
	*ret = decoder->aside;
	return 0;
}

static int decode_detached(struct mt_decoder *decoder, struct mt_stack_record *head,
			   struct cursor *cursor, struct frame **ret)
{
	int err;

	if (head->ref_digest || head->digest || !cursor->n_words)
		return -EBADMSG;
	cursor->n_words--;
	memcpy(&head->digest, cursor->at + cursor->n_words * 8, sizeof(head->digest));
	if (!head->digest)
		return -EBADMSG;
	err = frame_aside(decoder, ret);
	if (err)
		return err;
	return apply(*ret, decoder->groups, head, cursor);
}

static int decode_raw(struct mt_decoder *decoder, const struct mt_stack_record *head,
		      struct cursor *cursor, struct frame **ret)
{
	uint64_t base = head->start & ~(uint64_t)(MT_GROUP_BYTES - 1), at, sum = 0;
	struct frame *frame;
	int err;

	if (!head->digest || head->mask[0] || head->mask[1] ||
	    cursor->n_words != (head->end - head->start) / 8)
		return -EBADMSG;
	err = frame_aside(decoder, &frame);
	if (err)
		return err;
	for (at = head->start; at < head->end; at += 8)
		frame->words[at / 8 & (decoder->budget_bytes / 8 - 1)] = take_word(cursor);
	for (at = base; at < head->end; at += MT_GROUP_BYTES) {
		uint32_t r = at / MT_GROUP_BYTES & (decoder->groups - 1);
		uint32_t range = mt_group_range(head->start, head->end, r, decoder->groups);

		sum += mt_digest_part(hash_group(frame->words + r * MT_GROUP_WORDS, range), r);
	}
	if (mt_digest_finish(head->start, head->end, head->epoch, sum) != head->digest)
		return -EILSEQ;
	decoder->generation = head->generation;
	decoder->reference->digest = head->digest;
	*ret = frame;
	return 0;
}

static int decode_delta(struct mt_decoder *decoder, const struct mt_stack_record *head,
			struct cursor *cursor, struct frame **ret)
{
	struct frame *reference = decoder->reference;

	if (!head->digest || !head->ref_digest)
		return -EBADMSG;
	if (head->ref_digest != reference->digest || head->generation != decoder->generation)
		return -ESTALE;
	*ret = reference;
	return apply(reference, decoder->groups, head, cursor);
}

static int decode_key(struct mt_decoder *decoder, const struct mt_stack_record *head,
		      struct cursor *cursor, struct frame **ret)
{
	struct frame *reference = decoder->reference;

	if (!head->digest || head->ref_digest)
		return -EBADMSG;
	frame_clear(reference, decoder->budget_bytes);
	decoder->generation = head->generation;
	*ret = reference;
	return apply(reference, decoder->groups, head, cursor);
}

int mt_decode_record(struct mt_decoder *decoder, const void *bytes, size_t len,
		     struct mt_window *ret)
{
	struct mt_stack_record head;
	struct cursor cursor;
	struct frame *frame;
	int err;

	err = take_head(decoder, bytes, len, &head);
	if (err)
		return err;
	cursor.at = (const char *)bytes + sizeof(head);
	cursor.n_words = (len - sizeof(head)) / 8;

	switch (head.kind) {
	case MT_STACK_DELTA:
		err = decode_delta(decoder, &head, &cursor, &frame);
		break;
	case MT_STACK_KEY:
		err = decode_key(decoder, &head, &cursor, &frame);
		break;
	case MT_STACK_KIND_DETACHED:
		err = decode_detached(decoder, &head, &cursor, &frame);
		break;
	case MT_STACK_RAW:
		err = decode_raw(decoder, &head, &cursor, &frame);
		break;
	default:
		err = -EBADMSG;
	}
	if (err)
		return err;
	ret->start = head.start;
	ret->end = head.end;
	ret->words = frame->words;
	ret->mask = decoder->budget_bytes / 8 - 1;
	ret->bottom = head.end - (head.start & ~(uint64_t)(MT_GROUP_BYTES - 1)) <
		      decoder->budget_bytes;
	return 0;
}
