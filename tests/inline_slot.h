/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * inline_slot.h - a slot that captures inline, for the tests of the codec
 *
 * Lays reference, dictionary, words and scratch out as wire/reference.h says, and captures
 * as the shim does with wire/stack_encode.h.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stack_player.h"
#include "wire/stack_encode.h"

#define SLOT_INDEX 3
#define SLOT_TIME_NS 0x123456789abULL

static const struct mt_compare plain_compare = { mt_groups_differ, mt_words_of_group_differ,
						 mt_copy_words };

struct inline_slot {
	char *memory; /* to be freed */
	struct mt_reference *reference;
	__u64 *dictionary;
	__u64 *words;
	struct mt_scratch *scratch;
	uint64_t budget_bytes;
	const struct mt_compare *compare;
};

/* In memory that has room for a reference, and is the caller's. */
static inline void slot_init_at(struct inline_slot *slot, void *at, uint64_t budget_bytes)
{
	slot->memory = NULL;
	slot->scratch = malloc(mt_scratch_inline_bytes(budget_bytes));
	ck_assert_ptr_nonnull(slot->scratch);
	/* Nothing may depend on what an earlier capture left there. */
	memset(slot->scratch, 0x5a, mt_scratch_inline_bytes(budget_bytes));
	slot->reference = at;
	slot->dictionary = (__u64 *)((char *)at + MT_DICTIONARY_OFFSET);
	slot->words = (__u64 *)((char *)at + MT_WORDS_OFFSET);
	slot->budget_bytes = budget_bytes;
	slot->compare = &plain_compare;
	mt_claim_reference(slot->reference, slot->dictionary);
}

static inline void slot_init(struct inline_slot *slot, uint64_t budget_bytes)
{
	char *memory = calloc(1, MT_WORDS_OFFSET + budget_bytes);

	ck_assert_ptr_nonnull(memory);
	slot_init_at(slot, memory, budget_bytes);
	slot->memory = memory;
}

static inline void slot_done(struct inline_slot *slot)
{
	free(slot->memory);
	free(slot->scratch);
}

/* The digest of the player's window, and the groups that differ from the reference. */
static inline uint64_t slot_digest(struct inline_slot *slot, const struct stack_player *player,
				   __u64 mask[2])
{
	return mt_digest_window(slot->reference, slot->words, player->start, player->end, 0,
				player->epoch, slot->budget_bytes, slot->compare, mask);
}

/* Encodes the player's window as seen at seq; the record is at &slot->scratch->record. */
static inline uint32_t slot_encode(struct inline_slot *slot, const struct stack_player *player,
				   uint64_t seq, const __u64 mask[2])
{
	mt_read_window(slot->reference, slot->scratch, SLOT_INDEX, seq, player->start, player->end,
		       0, player->epoch, mask, slot->budget_bytes, slot->compare, SLOT_TIME_NS);
	return mt_encode_window(slot->reference, slot->dictionary, slot->words, slot->scratch,
				slot->budget_bytes, slot->compare);
}

/* The player's window as a raw record in record, with room for one; returns its length. */
static inline uint32_t slot_raw(const struct stack_player *player, uint32_t number, void *record)
{
	uint64_t head_bytes = mt_stack_head_bytes(player->budget_bytes);
	uint64_t bytes = player->end - player->start, digest, sum = 0;
	const uint64_t *live = (const uint64_t *)player->start;
	struct mt_stack_record head = {
		.len_words = (head_bytes + bytes) / 8 + 1,
		.slot = SLOT_INDEX,
		.kind = MT_STACK_RAW,
		.seq = number,
		.window_words = bytes / 8,
		.start = player->start,
		.epoch = player->epoch,
		.time = SLOT_TIME_NS >> MT_STACK_TIME_SHIFT,
	};

	head.check = mt_stack_check(&head, 0);
	memcpy(record, &head, head_bytes);
	memcpy((char *)record + head_bytes, live, bytes);
	for (uint64_t k = 0; k * MT_GROUP_BYTES < bytes; k++) {
		uint64_t left = bytes - k * MT_GROUP_BYTES;
		__u64 block[MT_GROUP_WORDS] = { 0 };

		memcpy(block, live + k * MT_GROUP_WORDS,
		       left < MT_GROUP_BYTES ? left : MT_GROUP_BYTES);
		sum += mt_digest_part(mt_group_hash(block), k);
	}
	digest = mt_digest_finish(player->start, player->end, player->epoch, sum);
	memcpy((char *)record + head_bytes + bytes, &digest, sizeof(digest));
	return head.len_words * 8;
}

/* Makes a head that was changed on purpose one that its check fits. */
static inline void record_seal(struct mt_stack_record *head, uint64_t budget_bytes)
{
	bool has_mask1 = mt_stack_head_bytes(budget_bytes) == sizeof(*head);

	head->check = mt_stack_check(head, has_mask1 ? head->mask[1] : 0);
}

/* The maps of a group that ends at end; returns the halves that it takes. */
static inline __u64 record_maps(const __u32 *end, __u64 *lows, __u64 *highs)
{
	__u64 low_index = ((const __u8 *)end)[-2], high_index = ((const __u8 *)end)[-1];
	__u64 halves = mt_map_halves(low_index, high_index), bytes = 0;
	const __u8 *at = (const __u8 *)(end - halves);

	*lows = mt_get_map(at, low_index, &bytes);
	*highs = mt_get_map(at, high_index, &bytes);
	return halves + mt_count_bits(*lows) + mt_count_bits(*highs);
}

static inline void slot_commit(struct inline_slot *slot)
{
	mt_commit_window(slot->reference, slot->dictionary, slot->words, slot->scratch,
			 slot->budget_bytes, slot->compare);
}
