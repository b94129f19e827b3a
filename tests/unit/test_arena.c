/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_arena.c - blocks and events from before the real functions are known
 *
 * Holds the invariants of preload/arena.c, and that each block lies in the arena as it was asked
 * for.
 */
#include "preload/arena.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ring.h"

/* A block that overlaps none before it, filled with a byte of its own. */
static char *take(size_t align, size_t size, char byte)
{
	char *p = mt_arena_alloc(align, size);

	if (!p)
		return NULL;
	ck_assert(mt_arena_owns(p));
	ck_assert(mt_arena_owns(p + mt_arena_size(p) - 1));
	ck_assert_uint_eq((uintptr_t)p % (align > 16 ? align : 16), 0);
	ck_assert_uint_ge(mt_arena_size(p), size);
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(p[i], 0);
	memset(p, byte, mt_arena_size(p));
	return p;
}

START_TEST(alignments)
{
	for (size_t align = 16; align <= MT_ARENA_BYTES / 2; align *= 2) {
		char *a = take(align, 40, 1), *b = take(0, 24, 2);

		/* One that is as large as that may find no place. */
		if (align > MT_ARENA_BYTES / 8 && !a)
			continue;
		ck_assert_ptr_nonnull(a);
		ck_assert_ptr_nonnull(b);
		ck_assert_int_eq(a[39], 1);
		ck_assert_uint_eq(mt_arena_size(a), 40);
	}
	ck_assert_ptr_null(mt_arena_alloc(2 * MT_ARENA_BYTES, 1));
}
END_TEST

/* Also the last one of a full arena, which nothing is behind. */
START_TEST(blocks_of_nothing)
{
	char *p, *last = NULL;

	while ((p = take(16, 0, 3)))
		last = p;
	ck_assert_ptr_nonnull(last);
	ck_assert(mt_arena_used());
	ck_assert_ptr_null(mt_arena_alloc(0, MT_ARENA_BYTES));
	ck_assert_ptr_null(mt_arena_alloc(0, SIZE_MAX));
}
END_TEST

START_TEST(block_at_the_end)
{
	ck_assert_ptr_nonnull(take(0, MT_ARENA_BYTES - 2 * 16, 4));
	ck_assert_ptr_null(take(0, 0, 5));
}
END_TEST

/* What finds no place is counted, and nothing is kept once all was taken. */
START_TEST(events)
{
	const struct mt_arena_event *kept;
	uint64_t lost;
	char block;

	for (size_t i = 0; i < MT_ARENA_EVENTS + 3; i++)
		ck_assert(mt_arena_note(MT_CELL_ALLOC, 7, &block, i));
	ck_assert_uint_eq(mt_arena_take(&kept, &lost), MT_ARENA_EVENTS);
	ck_assert_uint_eq(lost, 3);
	for (size_t i = 0; i < MT_ARENA_EVENTS; i++) {
		ck_assert_uint_eq(kept[i].type, MT_CELL_ALLOC);
		ck_assert_uint_eq(kept[i].kind, 7);
		ck_assert_uint_eq(kept[i].address, (uintptr_t)&block);
		ck_assert_uint_eq(kept[i].size, i);
	}
	ck_assert(!mt_arena_note(MT_CELL_FREE, 7, &block, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arena");
	TCase *tcase = tcase_create("arena");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, alignments);
	tcase_add_test(tcase, blocks_of_nothing);
	tcase_add_test(tcase, block_at_the_end);
	tcase_add_test(tcase, events);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
