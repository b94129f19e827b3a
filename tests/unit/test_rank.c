/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_rank.c - report/rank.c: order, ties, limit
 */
#include "report/rank.h"

#include <check.h>
#include <stdlib.h>

static struct mt_replay_chain chains[] = {
	{ .node = 0 },
	{ .node = 20,
	  .figures = { .allocations = 5,
		       .bytes_allocated = 50,
		       .left_bytes = 7,
		       .left_allocations = 1 },
	  .at_peak = { .bytes = 10, .allocations = 1 } },
	{ .node = 17,
	  .figures = { .allocations = 5,
		       .bytes_allocated = 60,
		       .left_bytes = 0,
		       .left_allocations = 2 },
	  .at_peak = { .bytes = 10, .allocations = 3 } },
	{ .node = 18,
	  .figures = { .allocations = 9, .bytes_allocated = 9 },
	  .at_peak = { .bytes = 0, .allocations = 0 } },
	{ .node = 16,
	  .figures = { .allocations = 5,
		       .bytes_allocated = 50,
		       .left_bytes = 7,
		       .left_allocations = 1 },
	  .at_peak = { .bytes = 30, .allocations = 1 } },
};
static const struct mt_replay replay = {
	.chains = chains,
	.chains_len = sizeof(chains) / sizeof(chains[0]),
};

static void check_nodes(enum mt_rank rank, size_t limit, const uint32_t *nodes, size_t expected)
{
	struct mt_rank_row *rows;
	size_t len;

	ck_assert_int_eq(mt_rank_chains(&replay, rank, limit, &rows, &len), 0);
	ck_assert_uint_eq(len, expected);
	for (size_t i = 0; i < len; i++)
		ck_assert_uint_eq(rows[i].node, nodes[i]);
	free(rows);
}

START_TEST(by_peak)
{
	check_nodes(MT_RANK_PEAK, 10, (const uint32_t[]){ 16, 17, 20 }, 3);
}
END_TEST

START_TEST(by_allocations)
{
	check_nodes(MT_RANK_ALLOCATIONS, 10, (const uint32_t[]){ 18, 17, 16, 20 }, 4);
}
END_TEST

/* Blocks of no bytes are left too. */
START_TEST(by_what_is_left)
{
	check_nodes(MT_RANK_LEFT, 10, (const uint32_t[]){ 16, 20, 17 }, 3);
}
END_TEST

START_TEST(no_more_than_asked_for)
{
	check_nodes(MT_RANK_ALLOCATIONS, 2, (const uint32_t[]){ 18, 17 }, 2);
}
END_TEST

START_TEST(of_nothing)
{
	struct mt_replay empty = { .chains = chains, .chains_len = 1 };
	struct mt_rank_row *rows;
	size_t len;

	ck_assert_int_eq(mt_rank_chains(&empty, MT_RANK_PEAK, 10, &rows, &len), 0);
	ck_assert_uint_eq(len, 0);
	free(rows);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rank");
	TCase *tcase = tcase_create("rank");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, by_peak);
	tcase_add_test(tcase, by_allocations);
	tcase_add_test(tcase, by_what_is_left);
	tcase_add_test(tcase, no_more_than_asked_for);
	tcase_add_test(tcase, of_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
