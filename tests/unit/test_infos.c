/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_infos.c - artifact/infos.c: equal infos have one number, others have others
 */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "artifact/infos.h"

/* Different for each i, and in one field or another only. */
static struct mt_info info_of(uint32_t i)
{
	struct mt_info info = { .size = 1, .node = 1, .type = 1, .function = 1 };

	switch (i % 5) {
	case 0:
		info.size = (uint64_t)i << 32;
		break;
	case 1:
		info.size = i + 2;
		break;
	case 2:
		info.node = i;
		break;
	case 3:
		info.node = UINT32_MAX - i;
		info.type = 6;
		break;
	default:
		info.size = UINT64_MAX - i;
		info.function = 255;
	}
	return info;
}

START_TEST(full_table_and_again)
{
	struct mt_infos infos = { 0 };
	struct mt_info info;
	uint32_t wrong = 0, ret;

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MT_INFOS_MAX; i++) {
			info = info_of(i);
			if (mt_infos_intern(&infos, &info, &ret) != 1 || ret != i)
				wrong++;
		}
		for (uint32_t i = 0; i < MT_INFOS_MAX; i++) {
			info = info_of(i);
			if (mt_infos_intern(&infos, &info, &ret) != 0 || ret != i)
				wrong++;
		}
		ck_assert_uint_eq(wrong, 0);
		info = info_of(MT_INFOS_MAX);
		ck_assert_int_eq(mt_infos_intern(&infos, &info, &ret), -ENOSPC);
		ck_assert_uint_eq(infos.n, MT_INFOS_MAX);
		mt_infos_reset(&infos);
		ck_assert_uint_eq(infos.n, 0);
	}
	mt_infos_done(&infos);
}
END_TEST

START_TEST(nothing_to_reset)
{
	struct mt_infos infos = { 0 };

	mt_infos_reset(&infos);
	mt_infos_done(&infos);
	mt_infos_done(&infos);
	ck_assert_uint_eq(infos.n, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("infos");
	TCase *tcase = tcase_create("infos");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, full_table_and_again);
	tcase_add_test(tcase, nothing_to_reset);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
