/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * inline_slot.h - a slot that captures inline, for the tests of the codec
 *
 * Lays reference, dictionary, words and scratch out as wire/reference.h says, and captures
 * as the shim does with wire/stack_encode.h.
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/stack_player.h"
#include "wire/stack_encode.h"

struct inline_slot {
	char *memory;
	struct mt_reference *reference;
	__u64 *dictionary;
	__u64 *words;
	struct mt_scratch *scratch;
	uint64_t budget_bytes;
};

static inline void slot_init(struct inline_slot *slot, uint64_t budget_bytes)
{
	slot->memory = calloc(1, MT_WORDS_OFFSET + budget_bytes);
	slot->scratch = malloc(mt_scratch_bytes(budget_bytes));
	ck_assert_ptr_nonnull(slot->memory);
	ck_assert_ptr_nonnull(slot->scratch);
	/* Nothing may depend on what an earlier capture left there. */
	memset(slot->scratch, 0x5a, mt_scratch_bytes(budget_bytes));
	slot->reference = (struct mt_reference *)slot->memory;
	slot->dictionary = (__u64 *)(slot->memory + MT_DICTIONARY_OFFSET);
	slot->words = (__u64 *)(slot->memory + MT_WORDS_OFFSET);
	slot->budget_bytes = budget_bytes;
	mt_claim_reference(slot->reference, slot->dictionary);
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
				player->epoch, slot->budget_bytes, mt_groups_differ, mask);
}

/* Encodes the player's window as seen at seq; the record is at &slot->scratch->record. */
static inline uint32_t slot_encode(struct inline_slot *slot, const struct stack_player *player,
				   uint64_t seq, const __u64 mask[2])
{
	return mt_encode_window(slot->reference, slot->words, slot->scratch, 3, seq, player->start,
				player->end, 0, player->epoch, mask, slot->budget_bytes, 77);
}

static inline void slot_commit(struct inline_slot *slot)
{
	mt_commit_window(slot->reference, slot->dictionary, slot->words, slot->scratch,
			 slot->budget_bytes);
}
