/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_block_table.c - report/block_table.c against an array, with addresses that collide
 */
#include "report/block_table.h"

#include <check.h>
#include <stdlib.h>

#define ADDRESSES 3000

/* Few places for many addresses, so that runs of neighbours form, break and wrap. */
START_TEST(finds_what_is_there)
{
	struct mt_block_table table = { .seed = (uint64_t)_i * 0x123456789abcdefULL };
	static char live[ADDRESSES];
	size_t len = 0;

	srand((unsigned int)_i);
	for (int step = 0; step < 60000; step++) {
		uint64_t address = 1 + (uint64_t)rand() % (ADDRESSES - 1);
		struct mt_block *block = mt_block_find(&table, address);

		ck_assert_int_eq(block != NULL, live[address]);
		if (block) {
			ck_assert_uint_eq(block->address, address);
			ck_assert_uint_eq(block->size, address * 3);
			mt_block_remove(&table, block);
			len--;
		} else {
			ck_assert_int_eq(mt_block_add(&table, address, &block), 0);
			ck_assert_uint_eq(block->size, 0);
			block->size = address * 3;
			len++;
		}
		live[address] ^= 1;
		ck_assert_uint_eq(table.len, len);
	}
	for (uint64_t address = 1; address < ADDRESSES; address++) {
		ck_assert_int_eq(mt_block_find(&table, address) != NULL, live[address]);
		live[address] = 0;
	}
	mt_block_table_done(&table);
	ck_assert_ptr_null(mt_block_find(&table, 1));
}
END_TEST

START_TEST(is_never_full)
{
	struct mt_block_table table = { 0 };
	struct mt_block *block;

	for (uint64_t i = 1; i <= 100000; i++) {
		ck_assert_int_eq(mt_block_add(&table, i << 4, &block), 0);
		ck_assert_uint_lt(table.len, table.room);
	}
	ck_assert_uint_ge(table.len * 2, table.room);
	ck_assert_ptr_null(mt_block_find(&table, 100001 << 4));
	mt_block_table_done(&table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("block_table");
	TCase *tcase = tcase_create("block_table");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, finds_what_is_there, 0, 8);
	tcase_add_test(tcase, is_never_full);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
