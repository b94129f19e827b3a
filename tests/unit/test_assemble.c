/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_assemble.c - pieces to records: in order, interleaved, abandoned, hostile
 */
#include "collector/assemble.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct mt_assembler assembler;

static void setup(void)
{
	assembler = (struct mt_assembler){ 0 };
}

static void teardown(void)
{
	mt_assembler_done(&assembler);
}

static struct mt_cell piece(int kind, unsigned id, unsigned pieces, unsigned index)
{
	struct mt_cell cell = { .head = MT_CELL_HEAD(MT_CELL_PIECE, kind, index,
						     id << 16 | pieces) };

	cell.w[0] = id * 1000 + index;
	cell.w[1] = ~cell.w[0];
	cell.w[2] = cell.w[0] * 3;
	return cell;
}

static int add(struct mt_cell cell, void **ret, size_t *ret_len)
{
	return mt_assembler_add(&assembler, &cell, ret, ret_len);
}

static void check_record(const void *record, size_t len, unsigned id, unsigned pieces)
{
	const uint64_t *w = record;

	ck_assert_uint_eq(len, pieces * MT_PIECE_BYTES);
	for (unsigned i = 0; i < pieces; i++) {
		ck_assert_uint_eq(w[3 * i], id * 1000 + i);
		ck_assert_uint_eq(w[3 * i + 1], ~(uint64_t)(id * 1000 + i));
	}
}

START_TEST(one_piece)
{
	void *record;
	size_t len;

	ck_assert_int_eq(add(piece(MT_RECORD_NOTE, 7, 1, 0), &record, &len), MT_RECORD_NOTE);
	check_record(record, len, 7, 1);
}
END_TEST

START_TEST(interleaved)
{
	void *record;
	size_t len;

	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 3, 0), &record, &len), 0);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 2, 2, 0), &record, &len), 0);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 3, 1), &record, &len), 0);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 2, 2, 1), &record, &len), MT_RECORD_STACK);
	check_record(record, len, 2, 2);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 3, 2), &record, &len), MT_RECORD_STACK);
	check_record(record, len, 1, 3);
	ck_assert_uint_eq(assembler.abandoned, 0);
}
END_TEST

START_TEST(abandoned_make_way)
{
	void *record;
	size_t len;

	for (unsigned id = 0; id < 100; id++)
		ck_assert_int_eq(add(piece(MT_RECORD_STACK, id, 3, 0), &record, &len), 0);
	ck_assert_uint_eq(assembler.abandoned, 100 - MT_ASSEMBLE_PARTS);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 10, 3, 1), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 99, 3, 1), &record, &len), 0);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 99, 3, 2), &record, &len), MT_RECORD_STACK);
	check_record(record, len, 99, 3);
}
END_TEST

START_TEST(restart_forgets)
{
	void *record;
	size_t len;

	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 5, 2, 0), &record, &len), 0);
	mt_assembler_restart(&assembler);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 5, 2, 1), &record, &len), -EBADMSG);
	ck_assert_uint_eq(assembler.abandoned, 1);
}
END_TEST

START_TEST(hostile)
{
	void *record;
	size_t len;

	ck_assert_int_eq(add(piece(0, 1, 1, 0), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 0, 0), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 0xffff, 0), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 2, 1), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 2, 0), &record, &len), 0);
	/* Its own index again, another length, another kind. */
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 3, 1), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_NOTE, 1, 2, 1), &record, &len), -EBADMSG);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 1, 2, 1), &record, &len), MT_RECORD_STACK);
}
END_TEST

START_TEST(longest)
{
	unsigned pieces = MT_RECORD_MAX_BYTES / MT_PIECE_BYTES;
	void *record;
	size_t len;

	for (unsigned i = 0; i + 1 < pieces; i++)
		ck_assert_int_eq(add(piece(MT_RECORD_STACK, 3, pieces, i), &record, &len), 0);
	ck_assert_int_eq(add(piece(MT_RECORD_STACK, 3, pieces, pieces - 1), &record, &len),
			 MT_RECORD_STACK);
	check_record(record, len, 3, pieces);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("assemble");
	TCase *tcase = tcase_create("assemble");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, one_piece);
	tcase_add_test(tcase, interleaved);
	tcase_add_test(tcase, abandoned_make_way);
	tcase_add_test(tcase, restart_forgets);
	tcase_add_test(tcase, hostile);
	tcase_add_test(tcase, longest);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
