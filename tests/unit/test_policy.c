/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_policy.c - what is said of pressure on a command line
 */
#include "collector/policy.h"

#include <check.h>

static void refuse(const char *text)
{
	uint64_t ns;

	ck_assert_int_eq(mt_policy_timeout(text, &ns), -EINVAL);
}

static uint64_t timeout_ns(const char *text)
{
	uint64_t ns = 7;

	ck_assert_int_eq(mt_policy_timeout(text, &ns), 0);
	return ns;
}

START_TEST(seconds_have_a_fraction)
{
	ck_assert_uint_eq(timeout_ns("2"), 2000000000);
	ck_assert_uint_eq(timeout_ns("0.5"), 500000000);
	ck_assert_uint_eq(timeout_ns("86400"), 86400ULL * 1000000000);
	ck_assert_uint_eq(timeout_ns("inf"), MT_PRESSURE_INF);
}
END_TEST

/* 0 is another policy, which loses events: nothing but 0 is taken for it. */
START_TEST(only_zero_is_never)
{
	ck_assert_uint_eq(timeout_ns("0"), MT_PRESSURE_NEVER);
	ck_assert_uint_eq(timeout_ns("0.000"), MT_PRESSURE_NEVER);
	ck_assert_uint_eq(timeout_ns("0.0000000001"), 1);
}
END_TEST

START_TEST(other_texts_are_refused)
{
	static const char *const texts[] = { "",    ".",     "-1",   "1e3",   "nan",
					     "INF", "1.5.2", "0x10", "86401", "1 " };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse(texts[i]);
}
END_TEST

START_TEST(a_watermark_leaves_room)
{
	static const char *const texts[] = { "", "0", "00", "100", "1%", "-1", "+1" };
	uint32_t percent;

	ck_assert_int_eq(mt_policy_watermark("1", &percent), 0);
	ck_assert_uint_eq(percent, 1);
	ck_assert_int_eq(mt_policy_watermark("99", &percent), 0);
	ck_assert_uint_eq(percent, 99);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_int_eq(mt_policy_watermark(texts[i], &percent), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tcase = tcase_create("policy");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, seconds_have_a_fraction);
	tcase_add_test(tcase, only_zero_is_never);
	tcase_add_test(tcase, other_texts_are_refused);
	tcase_add_test(tcase, a_watermark_leaves_room);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
