/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_size.c - sizes as people write them
 */
#include "collector/size.h"

#include <check.h>
#include <stdlib.h>

static const struct {
	const char *text;
	int r;
	uint64_t bytes;
} sizes[] = {
	{ "0", 0, 0 },
	{ "8192", 0, 8192 },
	{ "8k", 0, 8192 },
	{ "8K", 0, 8192 },
	{ "8KiB", 0, 8192 },
	{ "8KB", 0, 8192 },
	{ "1M", 0, 1 << 20 },
	{ "3G", 0, 3ULL << 30 },
	{ "4G", 0, 1ULL << 32 },
	{ "5G", -ERANGE, 0 },
	{ "4294967296", 0, 1ULL << 32 },
	{ "4294967297", -ERANGE, 0 },
	{ "99999999999999999999999", -ERANGE, 0 },
	{ "18014398509481985K", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 8", -EINVAL, 0 },
	{ "8 K", -EINVAL, 0 },
	{ "8Q", -EINVAL, 0 },
	{ "8KK", -EINVAL, 0 },
	{ "8KiBs", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
};

START_TEST(size)
{
	uint64_t bytes = 77;

	ck_assert_int_eq(mt_size_parse(sizes[_i].text, 1ULL << 32, &bytes), sizes[_i].r);
	ck_assert_uint_eq(bytes, sizes[_i].r ? 77 : sizes[_i].bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("size");
	TCase *tcase = tcase_create("size");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, size, 0, sizeof(sizes) / sizeof(sizes[0]));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
