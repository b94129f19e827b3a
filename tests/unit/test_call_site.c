/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_call_site.c - collector/call_site.h on what the assembler makes of every form
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "collector/call_site.h"
#include "tests/cfi_bytes.h"
#include "tests/unit/call_forms.h"

static bool is_call(const uint8_t *end, size_t len)
{
	return mt_call_site_indirect(cfi_at_page_end(end - len, len), len);
}

START_TEST(calls)
{
	size_t n = (size_t)(call_ends_end - call_ends);

	ck_assert_uint_eq(n, 24);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(is_call(call_forms + call_ends[i], MT_CALL_SITE_BYTES), "call %zu",
			      i);
}
END_TEST

START_TEST(others)
{
	size_t n = (size_t)(other_ends_end - other_ends);

	ck_assert_uint_eq(n, 13);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(!is_call(call_forms + other_ends[i], MT_CALL_SITE_BYTES), "other %zu",
			      i);
}
END_TEST

/* At the start of a segment there are fewer. */
START_TEST(few_bytes)
{
	static const uint8_t call[] = { 0xff, 0x94, 0x9d, 0x78, 0x56, 0x34, 0x12 };
	static const uint8_t direct[] = { 0xe8, 0xf0, 0xff, 0xff, 0xff };
	int32_t offset = 7;

	for (size_t len = 0; len < sizeof(call); len++)
		ck_assert(!is_call(call + sizeof(call), len));
	ck_assert(is_call(call + sizeof(call), sizeof(call)));
	for (size_t len = 0; len < 2; len++)
		ck_assert(!is_call((const uint8_t *)"\xff\xd0" + 2, len));
	for (size_t len = 0; len < sizeof(direct); len++)
		ck_assert(!mt_call_site_direct(cfi_at_page_end(direct + sizeof(direct) - len, len),
					       len, &offset));
	ck_assert_int_eq(offset, 7);
	ck_assert(mt_call_site_direct(direct, sizeof(direct), &offset));
	ck_assert_int_eq(offset, -16);
}
END_TEST

START_TEST(direct_is_where_it_ends)
{
	static const uint8_t bytes[] = { 0x90, 0xe8, 1, 2, 3, 4, 0x90, 0x90 };
	int32_t offset;

	for (size_t len = 0; len <= sizeof(bytes); len++)
		ck_assert_int_eq(mt_call_site_direct(bytes, len, &offset), len == 6);
	ck_assert_int_eq(offset, 0x04030201);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call_site");
	TCase *tcase = tcase_create("call_site");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, calls);
	tcase_add_test(tcase, others);
	tcase_add_test(tcase, few_bytes);
	tcase_add_test(tcase, direct_is_where_it_ends);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
