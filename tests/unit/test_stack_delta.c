/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_stack_delta.c - the codec, wire/stack_delta.h and wire/stack_encode.h
 *
 * Round trips go through the real decoder, which shares neither the walk nor the hash with
 * the encoder.
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/decode.h"
#include "tests/inline_slot.h"
#include "tests/stack_player.h"
#include "wire/stack_encode.h"

#define STEPS 3000

static const uint32_t budgets[] = { 4096, 8192, 16384, 32768, 65536 };
#define N_BUDGETS (sizeof(budgets) / sizeof(*budgets))

START_TEST(range_bits_are_the_range)
{
	for (unsigned lo = 0; lo <= 64; lo++) {
		for (unsigned hi = lo; hi <= 64; hi++) {
			uint64_t expected = 0;

			for (unsigned i = lo; i < hi; i++)
				expected |= 1ULL << i;
			ck_assert_uint_eq(mt_range_bits(MT_RANGE(lo, hi)), expected);
		}
	}
}
END_TEST

/* Each word of a window is in one group's range, at its place, and in no other. */
START_TEST(ranges_cover_the_window)
{
	uint64_t budget = budgets[_i], starts[] = { 512 * 1000, 512 * 1000 + 8, 512 * 1001 - 8 };
	uint32_t groups = budget / MT_GROUP_BYTES;

	for (unsigned i = 0; i < 3; i++) {
		uint64_t base = starts[i] & ~511ULL;

		for (uint64_t end = starts[i] + 8; end <= base + budget; end += 8 * 61) {
			uint64_t words = 0;

			for (uint32_t r = 0; r < groups; r++) {
				uint64_t at = mt_group_address(starts[i], r, groups);
				uint32_t range = mt_group_range(starts[i], end, r, groups);
				unsigned lo = MT_RANGE_LO(range), hi = MT_RANGE_HI(range);

				ck_assert_uint_eq(at / MT_GROUP_BYTES % groups, r);
				ck_assert_uint_ge(at, base);
				ck_assert_uint_lt(at, base + budget);
				words += hi - lo;
				if (!range)
					continue;
				ck_assert_uint_lt(lo, hi);
				ck_assert_uint_ge(at + 8 * lo, starts[i]);
				ck_assert_uint_le(at + 8 * hi, end);
			}
			ck_assert_uint_eq(words, (end - starts[i]) / 8);
		}
	}
}
END_TEST

START_TEST(window_bounds)
{
	ck_assert(mt_window_valid(0x1000, 0x1008, 4096));
	ck_assert(mt_window_valid(0x11f8, 0x2000, 4096));
	ck_assert(!mt_window_valid(0x11f8, 0x2008, 4096));
	ck_assert(!mt_window_valid(0x1000, 0x1000, 4096));
	ck_assert(!mt_window_valid(0x1008, 0x1000, 4096));
	ck_assert(!mt_window_valid(0x1004, 0x1010, 4096));
	ck_assert(!mt_window_valid(0x1000, 0x100c, 4096));
	ck_assert(!mt_window_valid(0xffffffffff600000, 0xffffffffff601000, 8192));
	ck_assert(!mt_window_valid(0xfffffffffffffff8, 0, 8192));
}
END_TEST

START_TEST(compare_finds_each_word)
{
	uint64_t budget = budgets[_i];
	struct stack_player player;
	struct inline_slot slot;
	__u64 mask[2];

	player_init(&player, budget, 5);
	slot_init(&slot, budget);
	player.start = player.bound - budget + 64;
	player.end = player_window_end(&player);
	slot_digest(&slot, &player, mask);
	slot_encode(&slot, &player, slot.reference->seq, mask);
	slot_commit(&slot);
	for (uint64_t at = player.start; at < player.end; at += 8 * 7) {
		uint32_t r = at / MT_GROUP_BYTES & (budget / MT_GROUP_BYTES - 1);

		*player_word(&player, at) ^= 1ULL << (at / 8 % 64);
		slot_digest(&slot, &player, mask);
		ck_assert_uint_eq(mask[r / 64], 1ULL << (r % 64));
		ck_assert_uint_eq(mask[1 - r / 64], 0);
		*player_word(&player, at) ^= 1ULL << (at / 8 % 64);
	}
	slot_digest(&slot, &player, mask);
	ck_assert_uint_eq(mask[0] | mask[1], 0);
	slot_done(&slot);
	player_done(&player);
}
END_TEST

/* What the reference holds is what the decoder holds: digest by digest, window by window. */
START_TEST(round_trips)
{
	uint64_t budget = budgets[_i], known = 0;
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;
	struct stack_player player;
	struct inline_slot slot;

	ck_assert_int_eq(mt_decoder_new(budget, &decoder), 0);
	player_init(&player, budget, 11 + _i);
	slot_init(&slot, budget);
	for (int i = 0; i < STEPS; i++) {
		uint64_t seq = slot.reference->seq, digest;
		struct mt_window window;
		uint32_t len;
		__u64 mask[2];

		player_step(&player);
		digest = slot_digest(&slot, &player, mask);
		known += mt_dictionary_has(slot.dictionary, digest);
		if (i % 100 == 99)
			slot.reference->resync_asked++;
		if (i % 50 == 49)
			seq--; /* as if something had come between */

		len = slot_encode(&slot, &player, seq, mask);
		ck_assert_uint_eq(slot.scratch->record.digest, digest);
		ck_assert_uint_le(len, MT_STACK_RECORD_MAX_BYTES(budget));
		ck_assert_uint_eq(slot.scratch->record.kind,
				  i == 0 || i % 100 == 99 ? MT_STACK_KEY : MT_STACK_DELTA);
		ck_assert_int_eq(mt_decode_record(decoder, &slot.scratch->record, len, &window), 0);
		player_check_window(&player, window.start, window.end, window.words, window.mask);

		slot_commit(&slot);
		ck_assert_uint_eq(slot.reference->seq, 2 * (uint64_t)slot.scratch->record.seq);
		ck_assert_uint_eq(slot.reference->digest, digest);
		ck_assert(mt_dictionary_has(slot.dictionary, digest));
		ck_assert_uint_eq(slot_digest(&slot, &player, mask), digest);
		ck_assert_uint_eq(mask[0] | mask[1], 0);
	}
	ck_assert_uint_gt(known, 0);
	slot_done(&slot);
	player_done(&player);
}
END_TEST

static uint32_t capture(struct inline_slot *slot, struct stack_player *player,
			struct mt_decoder *decoder)
{
	uint64_t seq = slot->reference->seq;
	struct mt_window window;
	__u64 mask[2];
	uint32_t len;

	player->end = player_window_end(player);
	slot_digest(slot, player, mask);
	len = slot_encode(slot, player, seq, mask);
	ck_assert_int_eq(mt_decode_record(decoder, &slot->scratch->record, len, &window), 0);
	player_check_window(player, window.start, window.end, window.words, window.mask);
	slot_commit(slot);
	return len;
}

/* The window moves within a group whose words stay: no XOR word, but another digest. */
START_TEST(range_moves_words_do_not)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;
	struct stack_player player;
	struct inline_slot slot;
	uint64_t digest;

	ck_assert_int_eq(mt_decoder_new(8192, &decoder), 0);
	player_init(&player, 8192, 1);
	slot_init(&slot, 8192);
	player.start = player.bound - 3072;
	capture(&slot, &player, decoder);
	digest = slot.reference->digest;

	player.start += 64;
	ck_assert_uint_eq(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	ck_assert_uint_ne(slot.reference->digest, digest);
	/* The words below the start are still in the reference. */
	player.start -= 64;
	ck_assert_uint_eq(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	ck_assert_uint_eq(slot.reference->digest, digest);
	/* So is what a shorter stack does not have at its end. */
	player.bound -= 1032;
	ck_assert_uint_eq(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	player.bound += 1032;
	ck_assert_uint_eq(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	ck_assert_uint_eq(slot.reference->digest, digest);
	slot_done(&slot);
	player_done(&player);
}
END_TEST

/* Another place with the same words modulo the budget is another window. */
START_TEST(alias_is_another_window)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;
	struct stack_player player;
	struct inline_slot slot;
	uint64_t digest;

	ck_assert_int_eq(mt_decoder_new(4096, &decoder), 0);
	player_init(&player, 4096, 1);
	slot_init(&slot, 4096);
	player.start = player.bound - 4096 + 24;
	capture(&slot, &player, decoder);
	digest = slot.reference->digest;
	memcpy((void *)(player.start - 4096), (void *)player.start, 4096 - 24);
	player.start -= 4096;
	player.bound -= 4096;
	ck_assert_uint_eq(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	ck_assert_uint_ne(slot.reference->digest, digest);
	slot_done(&slot);
	player_done(&player);
}
END_TEST

/* A key frame leaves nothing of the words outside its window. */
START_TEST(key_frame_clears)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;
	struct stack_player player;
	struct inline_slot slot;

	ck_assert_int_eq(mt_decoder_new(4096, &decoder), 0);
	player_init(&player, 4096, 9);
	slot_init(&slot, 4096);
	player.start = player.bound - 4096;
	capture(&slot, &player, decoder);
	slot.reference->resync_asked += 3;
	player.start = player.bound - 40;
	capture(&slot, &player, decoder);
	ck_assert_uint_eq(slot.reference->resync_done, 3);
	for (unsigned i = 0; i < 4096 / 8 - 5; i++)
		ck_assert_uint_eq(slot.words[i], 0);
	/* And the decoder agrees: what was cleared comes again. */
	player.start = player.bound - 4096;
	ck_assert_uint_gt(capture(&slot, &player, decoder), sizeof(struct mt_stack_record));
	slot_done(&slot);
	player_done(&player);
}
END_TEST

/* A longjmp out of a commit, then a claim: the reference is void, no number comes twice. */
START_TEST(torn_move_is_void)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *decoder = NULL;
	struct stack_player player;
	struct inline_slot slot;
	uint32_t torn;
	__u64 mask[2];

	ck_assert_int_eq(mt_decoder_new(4096, &decoder), 0);
	player_init(&player, 4096, 2);
	slot_init(&slot, 4096);
	capture(&slot, &player, decoder);

	player.start -= 800;
	player.end = player_window_end(&player);
	slot_digest(&slot, &player, mask);
	slot_encode(&slot, &player, slot.reference->seq, mask);
	torn = slot.scratch->record.seq;
	mt_reference_move_begin(slot.reference, slot.scratch);
	ck_assert(slot.reference->seq & 1);

	capture(&slot, &player, decoder);
	ck_assert_uint_eq(slot.scratch->record.kind, MT_STACK_KEY);
	ck_assert_uint_eq(slot.scratch->record.seq, torn + 1);

	mt_reference_move_begin(slot.reference, slot.scratch);
	mt_claim_reference(slot.reference, slot.dictionary);
	ck_assert_uint_eq(slot.reference->seq % 2, 0);
	ck_assert_uint_gt(slot.reference->seq / 2, torn + 1);
	ck_assert(!mt_dictionary_has(slot.dictionary, slot.scratch->record.digest));
	slot_done(&slot);
	player_done(&player);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack_delta");
	TCase *cases = tcase_create("stack_delta");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, cases);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, range_bits_are_the_range);
	tcase_add_loop_test(cases, ranges_cover_the_window, 0, N_BUDGETS);
	tcase_add_test(cases, window_bounds);
	tcase_add_loop_test(cases, compare_finds_each_word, 0, N_BUDGETS);
	tcase_add_loop_test(cases, round_trips, 0, N_BUDGETS);
	tcase_add_test(cases, range_moves_words_do_not);
	tcase_add_test(cases, alias_is_another_window);
	tcase_add_test(cases, key_frame_clears);
	tcase_add_test(cases, torn_move_is_void);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
