/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_tuning.c - what is a size of a ring, and what an interval
 */
#include "collector/tuning.h"

#include <check.h>
#include <stdlib.h>

static const struct {
	const char *text;
	int r;
	uint32_t value;
} event_rings[] = {
	{ "4096", 0, 4096 },	    { "4K", 0, 4096 },	    { "128K", 0, 128 << 10 },
	{ "64M", 0, 64 << 20 },	    { "2K", -ERANGE, 0 },   { "128M", -ERANGE, 0 },
	{ "0", -ERANGE, 0 },	    { "12K", -EINVAL, 0 },  { "4097", -EINVAL, 0 },
	{ "4G", -ERANGE, 0 },	    { "", -EINVAL, 0 },	    { "-4K", -EINVAL, 0 },
	{ "4Kx", -EINVAL, 0 },	    { "many", -EINVAL, 0 }, { "1", -ERANGE, 0 },
	{ "4294971392", -ERANGE, 0 },
}, stack_rings[] = {
	{ "64K", 0, 64 << 10 },	    { "256K", 0, 256 << 10 }, { "1G", 0, 1 << 30 },
	{ "32K", -ERANGE, 0 },	    { "2G", -ERANGE, 0 },     { "0", -ERANGE, 0 },
	{ "96K", -EINVAL, 0 },	    { "", -EINVAL, 0 },
}, wide_stack_rings[] = { /* of windows of 64 KiB */
	{ "256K", 0, 256 << 10 },   { "128K", -ERANGE, 0 },
}, intervals[] = {
	{ "1", 0, 1 },		    { "2000", 0, 2000 },      { "60000", 0, 60000 },
	{ "007", 0, 7 },	    { "0", -ERANGE, 0 },      { "60001", -ERANGE, 0 },
	{ "", -EINVAL, 0 },	    { "-1", -EINVAL, 0 },     { "1.5", -EINVAL, 0 },
	{ "2K", -EINVAL, 0 },	    { "4294967297", -ERANGE, 0 },
	{ "18446744073709551617", -ERANGE, 0 },
};

#define LEN(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))

START_TEST(event_ring)
{
	uint32_t value = 77;

	ck_assert_int_eq(mt_tuning_event_ring(event_rings[_i].text, &value), event_rings[_i].r);
	ck_assert_uint_eq(value, event_rings[_i].r ? 77 : event_rings[_i].value);
}
END_TEST

START_TEST(stack_ring)
{
	uint32_t value = 77;

	ck_assert_int_eq(mt_tuning_stack_ring(stack_rings[_i].text, 8192, &value),
			 stack_rings[_i].r);
	ck_assert_uint_eq(value, stack_rings[_i].r ? 77 : stack_rings[_i].value);
}
END_TEST

START_TEST(wide_stack_ring)
{
	uint32_t value = 77;

	ck_assert_int_eq(mt_tuning_stack_ring(wide_stack_rings[_i].text, 65536, &value),
			 wide_stack_rings[_i].r);
	ck_assert_uint_eq(value, wide_stack_rings[_i].r ? 77 : wide_stack_rings[_i].value);
}
END_TEST

START_TEST(interval)
{
	uint32_t value = 77;

	ck_assert_int_eq(mt_tuning_interval(intervals[_i].text, &value), intervals[_i].r);
	ck_assert_uint_eq(value, intervals[_i].r ? 77 : intervals[_i].value);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tuning");
	TCase *tcase = tcase_create("tuning");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, event_ring, 0, LEN(event_rings));
	tcase_add_loop_test(tcase, stack_ring, 0, LEN(stack_rings));
	tcase_add_loop_test(tcase, wide_stack_ring, 0, LEN(wide_stack_rings));
	tcase_add_loop_test(tcase, interval, 0, LEN(intervals));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
