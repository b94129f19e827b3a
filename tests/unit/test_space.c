/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_space.c - collector/space.h: ranges come and are cut; stamps tell
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "collector/space.h"
#include "tests/cfi_bytes.h"

static struct mt_space space;

static void setup(void)
{
	mt_space_init(&space);
}

static void teardown(void)
{
	mt_space_done(&space);
}

static void add(uint64_t start, uint64_t end, uint32_t module)
{
	uint64_t stamp = space.stamp;
	struct mt_space_range range = {
		.start = start,
		.end = end,
		.bias = start,
		.module = module,
	};

	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	ck_assert_uint_ne(space.stamp, stamp);
}

/* A module, or -1. */
static int at(uint64_t pc)
{
	const struct mt_space_range *range = mt_space_find(&space, pc);

	return range ? (int)range->module : -1;
}

START_TEST(found_by_their_bounds)
{
	ck_assert_int_eq(at(0), -1);
	add(0x3000, 0x4000, 3);
	add(0x1000, 0x2000, 1);
	add(0x2000, 0x3000, 2);
	ck_assert_int_eq(at(0xfff), -1);
	ck_assert_int_eq(at(0x1000), 1);
	ck_assert_int_eq(at(0x1fff), 1);
	ck_assert_int_eq(at(0x2000), 2);
	ck_assert_int_eq(at(0x3fff), 3);
	ck_assert_int_eq(at(0x4000), -1);
	ck_assert_int_eq(at(UINT64_MAX), -1);
}
END_TEST

START_TEST(a_new_range_takes_the_place)
{
	add(0x1000, 0x5000, 1);
	add(0x2000, 0x3000, 2);
	ck_assert_int_eq(at(0x1fff), 1);
	ck_assert_int_eq(at(0x2000), 2);
	ck_assert_int_eq(at(0x3000), 1);
	ck_assert_uint_eq(mt_space_find(&space, 0x3000)->bias, 0x1000);
	add(0x1800, 0x4000, 3);
	ck_assert_int_eq(at(0x17ff), 1);
	ck_assert_int_eq(at(0x2000), 3);
	ck_assert_int_eq(at(0x3fff), 3);
	ck_assert_int_eq(at(0x4000), 1);
	add(0x0, 0x10000, 4);
	ck_assert_uint_eq(space.len, 1);
	ck_assert_int_eq(at(0x4fff), 4);
}
END_TEST

START_TEST(neighbours_are_cut)
{
	add(0x1000, 0x2000, 1);
	add(0x2000, 0x3000, 2);
	add(0x4000, 0x5000, 4);
	/* What only touches is not. */
	add(0x3000, 0x4000, 9);
	add(0x5000, 0x6000, 9);
	add(0x0, 0x1000, 9);
	ck_assert_uint_eq(space.len, 6);
	ck_assert_int_eq(at(0xfff), 9);
	ck_assert_int_eq(at(0x1000), 1);
	ck_assert_int_eq(at(0x2fff), 2);
	ck_assert_int_eq(at(0x3000), 9);
	ck_assert_int_eq(at(0x4000), 4);
	ck_assert_int_eq(at(0x4fff), 4);
	ck_assert_int_eq(at(0x5000), 9);
	add(0x1800, 0x2800, 9);
	ck_assert_int_eq(at(0x17ff), 1);
	ck_assert_int_eq(at(0x1800), 9);
	ck_assert_int_eq(at(0x27ff), 9);
	ck_assert_int_eq(at(0x2800), 2);
	add(0x4400, 0x4800, 9);
	ck_assert_int_eq(at(0x43ff), 4);
	ck_assert_int_eq(at(0x4400), 9);
	ck_assert_int_eq(at(0x47ff), 9);
	ck_assert_int_eq(at(0x4800), 4);
	add(0, UINT64_MAX, 9);
	ck_assert_uint_eq(space.len, 1);
}
END_TEST

START_TEST(empty_ranges_are_refused)
{
	struct mt_space_range range = { .start = 0x1000, .end = 0x1000 };

	ck_assert_int_eq(mt_space_add(&space, &range), -EINVAL);
	range.end = 0xfff;
	ck_assert_int_eq(mt_space_add(&space, &range), -EINVAL);
}
END_TEST

/* A copy has the stamp until one of the two changes, and then only the other. */
START_TEST(copies)
{
	struct mt_space copy;
	uint64_t stamp;

	mt_space_init(&copy);
	ck_assert_uint_ne(copy.stamp, space.stamp);
	add(0x1000, 0x2000, 1);
	ck_assert_int_eq(mt_space_copy(&copy, &space), 0);
	ck_assert_uint_eq(copy.stamp, space.stamp);
	ck_assert_uint_eq(mt_space_find(&copy, 0x1000)->module, 1);
	stamp = space.stamp;
	add(0x3000, 0x4000, 2);
	ck_assert_uint_eq(copy.stamp, stamp);
	ck_assert_ptr_null(mt_space_find(&copy, 0x3000));
	mt_space_clear(&copy);
	ck_assert_uint_ne(copy.stamp, stamp);
	ck_assert_ptr_null(mt_space_find(&copy, 0x1000));
	ck_assert_int_eq(at(0x1000), 1);
	mt_space_clear(&space);
	ck_assert_int_eq(mt_space_copy(&copy, &space), 0);
	ck_assert_uint_eq(copy.len, 0);
	mt_space_done(&copy);
}
END_TEST

START_TEST(images_are_counted)
{
	static const struct elf_parts parts = { .with_sections = true };
	static struct cfi_bytes file;
	struct mt_space_range range = { .start = 0x101000, .end = 0x106000, .bias = 0x100000 };
	struct mt_space copy;

	mt_space_init(&copy);
	elf_put(&file, &parts);
	ck_assert_int_eq(mt_image_new_memory(file.bytes, file.len, &range.image), 0);
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	ck_assert_uint_eq(range.image->refs, 2);
	add(0x102000, 0x104000, 1);
	ck_assert_uint_eq(range.image->refs, 3);
	ck_assert_int_eq(mt_space_copy(&copy, &space), 0);
	ck_assert_uint_eq(range.image->refs, 5);
	ck_assert_int_eq(mt_space_copy(&copy, &space), 0);
	ck_assert_uint_eq(range.image->refs, 5);
	add(0x104000, 0x107000, 1);
	ck_assert_uint_eq(range.image->refs, 4);
	mt_space_done(&copy);
	ck_assert_uint_eq(range.image->refs, 2);
	mt_space_clear(&space);
	ck_assert_uint_eq(range.image->refs, 1);
	mt_image_unref(range.image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space");
	TCase *tcase = tcase_create("space");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, found_by_their_bounds);
	tcase_add_test(tcase, a_new_range_takes_the_place);
	tcase_add_test(tcase, neighbours_are_cut);
	tcase_add_test(tcase, empty_ranges_are_refused);
	tcase_add_test(tcase, copies);
	tcase_add_test(tcase, images_are_counted);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
