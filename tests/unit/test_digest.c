/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_digest.c - wire/digest.h and the hashes of groups against libxxhash
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "tests/inline_slot.h"
#include "wire/stack_encode.h"

#define ROUNDS 2000

static void fill(uint64_t *words, unsigned seed)
{
	srandom(seed);
	for (int i = 0; i < MT_GROUP_WORDS; i++)
		words[i] = (uint64_t)random() << 40 ^ (uint64_t)random() << 20 ^ (uint64_t)random();
}

START_TEST(group_hash_is_xxh64)
{
	uint64_t words[MT_GROUP_WORDS] = { 0 };

	ck_assert_uint_eq(mt_group_hash((__u64 *)words), XXH64(words, sizeof(words), 0));
	for (unsigned i = 0; i < ROUNDS; i++) {
		fill(words, i);
		ck_assert_uint_eq(mt_group_hash((__u64 *)words), XXH64(words, sizeof(words), 0));
	}
}
END_TEST

/* Every range of a group: words outside count as zero. */
START_TEST(live_hash_is_xxh64)
{
	uint64_t words[MT_GROUP_WORDS], inside[MT_GROUP_WORDS];

	fill(words, 7);
	for (unsigned lo = 0; lo < MT_GROUP_WORDS; lo++) {
		for (unsigned hi = lo + 1; hi <= MT_GROUP_WORDS; hi++) {
			memset(inside, 0, sizeof(inside));
			memcpy(inside + lo, words + lo, (hi - lo) * 8);
			ck_assert_uint_eq(mt_live_hash((__u64 *)words, MT_RANGE(lo, hi)),
					  XXH64(inside, sizeof(inside), 0));
		}
	}
}
END_TEST

/* The encoder hashes the copy that it makes; the digest alone is made of the live words. */
START_TEST(copied_group_is_what_is_hashed)
{
	uint64_t words[MT_GROUP_WORDS];
	__u64 copy[MT_GROUP_WORDS];

	fill(words, 9);
	for (unsigned lo = 0; lo < MT_GROUP_WORDS; lo += 3) {
		for (unsigned hi = lo + 1; hi <= MT_GROUP_WORDS; hi += 5) {
			mt_copy_group(copy, (__u64 *)words, MT_RANGE(lo, hi), &plain_compare);
			ck_assert_uint_eq(mt_group_hash(copy),
					  mt_live_hash((__u64 *)words, MT_RANGE(lo, hi)));
		}
	}
}
END_TEST

/* A raw window: blocks from its start on, wherever in a group that is, by libxxhash. */
START_TEST(raw_digest_is_of_blocks)
{
	uint64_t words[5 * MT_GROUP_WORDS], record[sizeof(words) / 8 + 16];
	struct stack_player player = { .budget_bytes = 4096, .epoch = 7 };

	for (unsigned i = 0; i < 5; i++)
		fill(words + i * MT_GROUP_WORDS, i);
	for (unsigned n = 1; n <= 4 * MT_GROUP_WORDS; n++) {
		unsigned at = n * 7 % MT_GROUP_WORDS;
		uint64_t sum = 0, digest;

		player.start = (uint64_t)(words + at);
		player.end = player.start + n * 8;
		for (unsigned k = 0; k * MT_GROUP_WORDS < n; k++) {
			uint64_t block[MT_GROUP_WORDS] = { 0 };
			unsigned left = n - k * MT_GROUP_WORDS;

			memcpy(block, words + at + k * MT_GROUP_WORDS,
			       (left < MT_GROUP_WORDS ? left : MT_GROUP_WORDS) * 8);
			sum += mt_digest_part(XXH64(block, sizeof(block), 0), k);
		}
		digest = mt_digest_finish(player.start, player.end, 7, sum);
		ck_assert_uint_eq(record[slot_raw(&player, n, record) / 8 - 1], digest);
	}
}
END_TEST

START_TEST(parts_depend_on_place)
{
	uint64_t words[MT_GROUP_WORDS] = { 0 };
	uint64_t zero = XXH64(words, sizeof(words), 0);
	uint64_t other;

	fill(words, 3);
	other = XXH64(words, sizeof(words), 0);
	ck_assert_uint_ne(mt_digest_part(zero, 0), mt_digest_part(zero, 1));
	/* Two groups that change places do not cancel out. */
	ck_assert_uint_ne(mt_digest_part(zero, 0) + mt_digest_part(other, 1),
			  mt_digest_part(other, 0) + mt_digest_part(zero, 1));
	ck_assert_uint_eq(mt_group_part(0, other, 3), 0);
	ck_assert_uint_eq(mt_group_part(MT_RANGE_FULL, other, 3), mt_digest_part(other, 3));
}
END_TEST

START_TEST(finish_depends_on_all)
{
	uint64_t digest = mt_digest_finish(0x1000, 0x2000, 1, 99);

	ck_assert_uint_ne(digest, mt_digest_finish(0x1008, 0x2000, 1, 99));
	ck_assert_uint_ne(digest, mt_digest_finish(0x1000, 0x2008, 1, 99));
	ck_assert_uint_ne(digest, mt_digest_finish(0x1000, 0x2000, 2, 99));
	ck_assert_uint_ne(digest, mt_digest_finish(0x1000, 0x2000, 1, 98));
	ck_assert_uint_ne(digest, mt_digest_finish(0x2000, 0x1000, 1, 99));
}
END_TEST

START_TEST(finish_is_never_zero)
{
	/* The sum that makes the hash's input 0, which the avalanche maps to 0. */
	uint64_t sum = 0 - mt_xxh_round(mt_xxh_round(5, 0x1000), 0x2000);

	ck_assert_uint_eq(mt_digest_finish(0x1000, 0x2000, 5, sum), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("digest");
	TCase *cases = tcase_create("digest");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, cases);
	tcase_add_test(cases, group_hash_is_xxh64);
	tcase_add_test(cases, live_hash_is_xxh64);
	tcase_add_test(cases, copied_group_is_what_is_hashed);
	tcase_add_test(cases, raw_digest_is_of_blocks);
	tcase_add_test(cases, parts_depend_on_place);
	tcase_add_test(cases, finish_depends_on_all);
	tcase_add_test(cases, finish_is_never_zero);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
