/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_stack_delta.c - the codec, wire/stack_delta.h and wire/stack_encode.h
 *
 * Round trips go through the real decoder, which shares neither the walk nor the hash with
 * the encoder.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/decode.h"
#include "preload/compare.h"
#include "tests/inline_slot.h"
#include "tests/stack_player.h"
#include "wire/stack_encode.h"

#define STEPS 3000
/* A record's at budgets up to 32 KiB. */
#define HEAD_BYTES (sizeof(struct mt_stack_record) - 8)

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

/* Every way to compare, with words that differ in any bit, at any alignment of 8 bytes. */
START_TEST(compare_variants_agree)
{
	static const struct {
		const char *name;
		struct mt_compare compare;
	} variants[] = {
		{ "portable", { mt_groups_differ, mt_words_of_group_differ, mt_copy_words } },
		{ "sse2", { mt_groups_differ_sse2, mt_words_differ_sse2, mt_copy_words_sse2 } },
		{ "avx2", { mt_groups_differ_avx2, mt_words_differ_avx2, mt_copy_words_avx2 } },
	};
	const struct mt_compare *compare = &variants[_i].compare;
	__u64 one[5 * MT_GROUP_WORDS + 4], other[5 * MT_GROUP_WORDS + 4];

	if (compare->words == mt_words_differ_avx2 && !__builtin_cpu_supports("avx2")) {
		printf("# no AVX2 on this machine\n");
		return;
	}
	for (uint32_t at = 0; at < 4; at++) {
		for (uint32_t i = 0; i < 5 * MT_GROUP_WORDS + 4; i++)
			one[i] = (i + 1) * MT_XXH_P1;
		memcpy(other, one, sizeof(one));
		ck_assert_uint_eq(compare->words(one + at, other + at), 0);
		ck_assert_uint_eq(compare->groups(one + at, other + at, 4), 0);
		for (uint32_t i = 0; i < 4 * MT_GROUP_WORDS; i++) {
			other[at + i] ^= 1ULL << i % 64;
			ck_assert_uint_eq(compare->groups(one + at, other + at, 4),
					  1ULL << i / MT_GROUP_WORDS);
			ck_assert_uint_eq(compare->words(one + at, other + at),
					  i < 64 ? 1ULL << i : 0);
			other[at + i] ^= 1ULL << i % 64;
		}
		memset(other, 0x5a, sizeof(other));
		compare->copy(other + at, one + 4 - at);
		ck_assert_mem_eq(other + at, one + 4 - at, MT_GROUP_BYTES);
		ck_assert_uint_eq(other[at + MT_GROUP_WORDS], 0x5a5a5a5a5a5a5a5aULL);
		memcpy(other, one, sizeof(one));
		/* What lies behind is not looked at; all may differ. */
		other[at + 4 * MT_GROUP_WORDS]++;
		ck_assert_uint_eq(compare->groups(one + at, other + at, 4), 0);
		for (uint32_t i = 0; i < 4 * MT_GROUP_WORDS; i += 3)
			other[at + i]++;
		ck_assert_uint_eq(compare->groups(one + at, other + at, 4), 0xf);
		ck_assert_uint_eq(compare->words(one + at, other + at), 0x9249249249249249);
	}
}
END_TEST

/* Two ways to encode a group, and two to bring the reference up to date. */
START_TEST(encoders_agree)
{
	struct stack_player player;

	player_init(&player, 8192, 23);
	for (int round = 0; round < 20000; round++) {
		__u64 live[MT_GROUP_WORDS], kept[MT_GROUP_WORDS], copy[MT_GROUP_WORDS];
		__u64 keep = round % 3 ? ~0ULL : 0, map, n, other_n, committed[MT_GROUP_WORDS];
		__u32 one[MT_ENCODED_HALVES + 2] = { 0 }, other[MT_ENCODED_HALVES + 2] = { 0 };
		__u64 lows = 0, highs = 0;

		for (uint32_t i = 0; i < MT_GROUP_WORDS; i++) {
			live[i] = player_random(&player) & (player_random(&player) % 2 ? ~0U : 0);
			live[i] |= player_random(&player) % 3 ? 0 : player_random(&player) << 32;
			kept[i] = player_random(&player) % 4 ? live[i] : player_random(&player);
		}
		memcpy(copy, live, sizeof(live));
		map = keep ? mt_words_of_group_differ(live, kept) : ~0ULL;
		other_n = mt_group_encode_words(live, kept, map, keep, other);
		n = mt_group_encode(live, kept, ~0ULL, keep, one);
		ck_assert_uint_eq(n, other_n);
		ck_assert_uint_le(n, MT_ENCODED_HALVES);
		ck_assert_mem_eq(one, other, n * sizeof(*one));
		ck_assert_mem_eq(live, copy, sizeof(live));

		memcpy(committed, kept, sizeof(kept));
		if (n)
			ck_assert_uint_eq(record_maps(one + n, &lows, &highs), n);
		mt_group_commit(committed, lows, highs, one, keep);
		ck_assert_mem_eq(committed, live, sizeof(live));
	}
	player_done(&player);
}
END_TEST

/* Words that the bits do not name are zero for the hash and not in the record. */
START_TEST(encode_keeps_to_its_bits)
{
	__u64 live[MT_GROUP_WORDS], kept[MT_GROUP_WORDS];
	__u32 out[MT_ENCODED_HALVES + 2];
	__u64 bits = mt_range_bits(MT_RANGE(5, 40)), lows, highs;

	for (uint32_t i = 0; i < MT_GROUP_WORDS; i++) {
		live[i] = ~(__u64)i;
		kept[i] = i;
	}
	/* 70 halves, 5 bytes of either map, their two indices. */
	ck_assert_uint_eq(mt_group_encode(live, kept, bits, ~0ULL, out), 73);
	ck_assert_uint_eq(record_maps(out + 73, &lows, &highs), 73);
	ck_assert_uint_eq(lows, bits);
	ck_assert_uint_eq(highs, bits);
	for (uint32_t i = 0; i < MT_GROUP_WORDS; i++)
		ck_assert_uint_eq(live[i], bits >> i & 1 ? ~(__u64)i : 0);
}
END_TEST

/* mt_scratch_plan() touches a group if and only if it has to: all groups are looked at. */
START_TEST(plan_is_exact)
{
	uint64_t budget = budgets[_i];
	uint32_t groups = budget / MT_GROUP_BYTES;
	struct stack_player player;
	struct inline_slot slot;
	__u64 said[2];

	player_init(&player, budget, 31 + _i);
	slot_init(&slot, budget);
	player_step(&player);
	for (int i = 0; i < STEPS; i++) {
		struct mt_scratch *scratch = slot.scratch;
		__u64 mask[2], expected[2] = { 0, 0 };

		/* What the last step left is the reference. */
		slot_digest(&slot, &player, mask);
		slot_encode(&slot, &player, slot.reference->seq, mask);
		slot_commit(&slot);
		player_step(&player);
		if (i % 40 == 39)
			slot.reference->resync_asked++;
		for (int w = 0; w < 2; w++)
			said[w] = player_random(&player) & player_random(&player) &
				  player_random(&player) & mt_bits_between(0, groups, w);
		memcpy(scratch->touched, said, sizeof(said));
		mt_scratch_begin(scratch, slot.reference, SLOT_INDEX, player.start, player.end,
				 player.epoch, SLOT_TIME_NS);
		mt_scratch_plan(scratch, slot.reference, groups);
		for (uint32_t r = 0; r < groups; r++) {
			uint32_t range = mt_group_range(player.start, player.end, r, groups);
			bool touched = !scratch->keep || said[r / 64] >> r % 64 & 1 ||
				       range != slot.reference->range[r];

			expected[r / 64] |= (__u64)touched << r % 64;
		}
		ck_assert_uint_eq(scratch->touched[0], expected[0]);
		ck_assert_uint_eq(scratch->touched[1], expected[1]);
	}
	slot_done(&slot);
	player_done(&player);
}
END_TEST

/* A digest has its place until both of its sets are full, and is found there, and nowhere
 * else. */
START_TEST(dictionary_sets)
{
	__u64 dictionary[MT_DICTIONARY] = { 0 }, digests[MT_DICTIONARY];
	uint32_t in_set[MT_DICTIONARY_SETS] = { 0 };
	uint64_t state = 0x9E3779B97F4A7C15, n = 0;

	/* Until each set has one free: none pushes out another. */
	for (uint32_t i = 0; n < MT_DICTIONARY / 8 * 7 && i < 100000; i++) {
		__u64 digest = state = mt_xxh_avalanche(state + i);
		uint32_t set = mt_dictionary_set(digest, 0) / MT_DICTIONARY_WAYS, at;

		if (in_set[set] == MT_DICTIONARY_WAYS)
			set = mt_dictionary_set(digest, 1) / MT_DICTIONARY_WAYS;
		if (in_set[set] >= MT_DICTIONARY_WAYS - (n > MT_DICTIONARY / 2))
			continue;
		ck_assert_int_eq(mt_dictionary_find(dictionary, digest), -1);
		at = mt_dictionary_place(dictionary, digest, i);
		ck_assert_uint_eq(at / MT_DICTIONARY_WAYS, set);
		ck_assert_uint_eq(dictionary[at], 0);
		dictionary[at] = digest;
		digests[n++] = digest;
		in_set[set]++;
	}
	ck_assert_uint_eq(n, MT_DICTIONARY / 8 * 7);
	for (uint32_t i = 0; i < n; i++) {
		int at = mt_dictionary_find(dictionary, digests[i]);

		ck_assert_int_ge(at, 0);
		ck_assert_uint_eq(dictionary[at], digests[i]);
		/* One that is there keeps its place, whatever the record's number. */
		ck_assert_uint_eq(mt_dictionary_place(dictionary, digests[i], i), at);
		/* One that was forgotten leaves a free place. */
		dictionary[at] = 0;
		ck_assert_int_eq(mt_dictionary_find(dictionary, digests[i]), -1);
		dictionary[mt_dictionary_place(dictionary, digests[i], i)] = digests[i];
	}
}
END_TEST

/* Where both sets are full the number of the record tells who goes: each of them. */
START_TEST(dictionary_full_set)
{
	__u64 dictionary[MT_DICTIONARY];
	uint32_t pushed_out = 0;

	for (uint32_t i = 0; i < MT_DICTIONARY; i++)
		dictionary[i] = (__u64)(i % MT_DICTIONARY_WAYS + 1) << 32 | i / MT_DICTIONARY_WAYS;
	for (uint32_t seq = 0; seq < 2 * MT_DICTIONARY_WAYS; seq++) {
		uint32_t at = mt_dictionary_place(dictionary, 99ULL << 32 | 18 << 7 | 17, seq);

		ck_assert_uint_eq(at / MT_DICTIONARY_WAYS, 17 + seq / MT_DICTIONARY_WAYS);
		pushed_out |= 1U << (at - 17 * MT_DICTIONARY_WAYS);
	}
	ck_assert_uint_eq(pushed_out, 0xffff);
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
		known += mt_dictionary_find(slot.dictionary, digest) >= 0;
		if (i % 100 == 99)
			slot.reference->resync_asked++;
		if (i % 50 == 49)
			seq--; /* as if something had come between */

		len = slot_encode(&slot, &player, seq, mask);
		ck_assert_uint_eq(slot.scratch->record.digest, digest);
		ck_assert_uint_le(len, mt_stack_record_max_bytes(budget));
		ck_assert_uint_eq(slot.scratch->record.kind,
				  i == 0 || i % 100 == 99 ? MT_STACK_KEY : MT_STACK_DELTA);
		ck_assert_int_eq(mt_decode_record(decoder, &slot.scratch->record, len, &window), 0);
		player_check_window(&player, window.start, window.end, window.words, window.mask);

		slot_commit(&slot);
		ck_assert_uint_eq(slot.reference->seq, 2 * (uint64_t)slot.scratch->record.seq);
		ck_assert_uint_eq(slot.reference->digest, digest);
		ck_assert_int_eq(mt_dictionary_find(slot.dictionary, digest),
				 slot.scratch->record.entry);
		ck_assert_uint_eq(slot.reference->entry, slot.scratch->record.entry);
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
	ck_assert_uint_eq(capture(&slot, &player, decoder), HEAD_BYTES);
	ck_assert_uint_ne(slot.reference->digest, digest);
	/* The words below the start are still in the reference. */
	player.start -= 64;
	ck_assert_uint_eq(capture(&slot, &player, decoder), HEAD_BYTES);
	ck_assert_uint_eq(slot.reference->digest, digest);
	/* So is what a shorter stack does not have at its end. */
	player.bound -= 1032;
	ck_assert_uint_eq(capture(&slot, &player, decoder), HEAD_BYTES);
	player.bound += 1032;
	ck_assert_uint_eq(capture(&slot, &player, decoder), HEAD_BYTES);
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
	ck_assert_uint_eq(capture(&slot, &player, decoder), HEAD_BYTES);
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
	ck_assert_uint_gt(capture(&slot, &player, decoder), HEAD_BYTES);
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
	ck_assert_int_eq(mt_dictionary_find(slot.dictionary, slot.scratch->record.digest), -1);
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
	tcase_add_loop_test(cases, compare_variants_agree, 0, 3);
	tcase_add_test(cases, encoders_agree);
	tcase_add_test(cases, encode_keeps_to_its_bits);
	tcase_add_loop_test(cases, plan_is_exact, 0, N_BUDGETS);
	tcase_add_test(cases, dictionary_sets);
	tcase_add_test(cases, dictionary_full_set);
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
