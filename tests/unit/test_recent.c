/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_recent.c - which window of a chain was sent: that one, or none is known
 */
#include "preload/recent.h"

#include <check.h>
#include <stdlib.h>

static struct mt_recent *recent;

static void setup(void)
{
	recent = calloc(1, sizeof(*recent));
	ck_assert_ptr_nonnull(recent);
}

static void teardown(void)
{
	free(recent);
}

START_TEST(found_by_key_and_epoch)
{
	const struct mt_chain chain = { .key = 0x123456789abcdef, .epoch = 7 };
	const struct mt_chain later = { .key = chain.key, .epoch = 8 };
	const struct mt_chain other = { .key = chain.key + 1, .epoch = 7 };

	ck_assert_uint_eq(mt_recent_find(recent, &chain), 0);
	mt_recent_put(recent, &chain, 0xfedcba9876543210);
	ck_assert_uint_eq(mt_recent_find(recent, &chain), 0xfedcba9876543210);
	ck_assert_uint_eq(mt_recent_find(recent, &later), 0);
	ck_assert_uint_eq(mt_recent_find(recent, &other), 0);
	mt_recent_put(recent, &chain, 5);
	ck_assert_uint_eq(mt_recent_find(recent, &chain), 5);
}
END_TEST

/* With more chains than there is room for, each is its own window's, or nobody's. */
START_TEST(never_anothers)
{
	struct mt_chain chain = { .epoch = 1 };
	uint32_t found = 0;

	for (uint64_t i = 1; i <= 20 * MT_RECENT_ENTRIES; i++) {
		chain.key = i * 0x2545f4914f6cdd1dULL >> 3;
		mt_recent_put(recent, &chain, i);
		ck_assert_uint_eq(mt_recent_find(recent, &chain), i);
	}
	for (uint64_t i = 1; i <= 20 * MT_RECENT_ENTRIES; i++) {
		uint64_t digest;

		chain.key = i * 0x2545f4914f6cdd1dULL >> 3;
		digest = mt_recent_find(recent, &chain);
		ck_assert(!digest || digest == i);
		found += digest != 0;
	}
	ck_assert_uint_gt(found, MT_RECENT_ENTRIES / 2);
	ck_assert_uint_le(found, MT_RECENT_ENTRIES);
}
END_TEST

/* A handler puts another chain at the same place after one of the two words of an entry was
 * written, or before it was left for good. */
START_TEST(half_of_two)
{
	const struct mt_chain one = { .key = 0x1111111111, .epoch = 1 };
	struct mt_chain other = { .key = one.key, .epoch = 1 };
	struct mt_recent_entry *entry = &recent->entries[mt_recent_place(&one)], of_one, of_other;

	do
		other.key++;
	while (mt_recent_place(&other) != mt_recent_place(&one));
	mt_recent_put(recent, &one, 1001);
	of_one = *entry;
	mt_recent_put(recent, &other, 2002);
	of_other = *entry;

	*entry = (struct mt_recent_entry){ of_one.mixed, of_other.digest };
	ck_assert_uint_eq(mt_recent_find(recent, &one), 0);
	ck_assert_uint_eq(mt_recent_find(recent, &other), 0);
	*entry = (struct mt_recent_entry){ of_other.mixed, of_one.digest };
	ck_assert_uint_eq(mt_recent_find(recent, &one), 0);
	ck_assert_uint_eq(mt_recent_find(recent, &other), 0);
	*entry = of_other;
	ck_assert_uint_eq(mt_recent_find(recent, &other), 2002);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recent");
	TCase *tcase = tcase_create("recent");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, found_by_key_and_epoch);
	tcase_add_test(tcase, never_anothers);
	tcase_add_test(tcase, half_of_two);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
