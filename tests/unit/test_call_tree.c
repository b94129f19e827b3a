/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_call_tree.c - collector/call_tree.h: equal chains are one node, others are not
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "collector/call_tree.h"

static struct mt_call_tree tree;

static void setup(void)
{
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
}

static void teardown(void)
{
	mt_call_tree_done(&tree);
}

static uint32_t child(uint32_t parent, uint32_t module, uint64_t offset, bool exact)
{
	struct mt_frame frame = { .offset = offset, .module = module, .exact = exact };
	uint32_t id;

	ck_assert_int_eq(mt_call_tree_child(&tree, parent, &frame, &id), 0);
	return id;
}

START_TEST(ids_are_counted_up)
{
	ck_assert_uint_eq(mt_call_tree_end(&tree), MT_NODE_FIRST);
	ck_assert_uint_eq(child(MT_STOP_END, 0, 0x1000, false), MT_NODE_FIRST);
	ck_assert_uint_eq(child(MT_NODE_FIRST, 0, 0x1000, false), MT_NODE_FIRST + 1);
	ck_assert_uint_eq(mt_call_tree_end(&tree), MT_NODE_FIRST + 2);
	ck_assert_uint_eq(child(MT_STOP_END, 0, 0x1000, false), MT_NODE_FIRST);
	ck_assert_uint_eq(mt_call_tree_end(&tree), MT_NODE_FIRST + 2);
}
END_TEST

START_TEST(each_part_of_a_frame_counts)
{
	uint32_t ids[] = {
		child(MT_STOP_END, 1, 0x1000, false),
		child(MT_STOP_TRUNCATED, 1, 0x1000, false),
		child(MT_STOP_END, 2, 0x1000, false),
		child(MT_STOP_END, 1, 0x1001, false),
		child(MT_STOP_END, 1, 0x1000, true),
		child(MT_STOP_END, MT_NO_MODULE, 0x1000, false),
		child(MT_STOP_END, 1, 0x1000 | 1ULL << 63, false),
		child(MT_STOP_END, 1, 0x1000 | 1ULL << 32, false),
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		ck_assert_uint_eq(ids[i], MT_NODE_FIRST + i);
}
END_TEST

START_TEST(nodes_are_what_was_put_in)
{
	uint32_t outer = child(MT_STOP_NO_CFI, 3, 0x123456789a, false);
	uint32_t inner = child(outer, MT_NO_MODULE, UINT64_MAX, true);
	const struct mt_call_node *node = mt_call_tree_node(&tree, inner);

	ck_assert_uint_eq(node->parent, outer);
	ck_assert_uint_eq(node->frame.module, MT_NO_MODULE);
	ck_assert_uint_eq(node->frame.offset, UINT64_MAX);
	ck_assert_uint_eq(node->frame.exact, 1);
	node = mt_call_tree_node(&tree, outer);
	ck_assert_uint_eq(node->parent, MT_STOP_NO_CFI);
	ck_assert_uint_eq(node->frame.offset, 0x123456789a);
	ck_assert_uint_eq(node->frame.exact, 0);
}
END_TEST

/* Through all growth of the table. */
START_TEST(many)
{
	enum { CHAINS = 300, DEPTH = 200 };
	uint32_t *ids = calloc(CHAINS * DEPTH, sizeof(*ids));

	ck_assert_ptr_nonnull(ids);
	for (int round = 0; round < 2; round++) {
		for (uint32_t chain = 0; chain < CHAINS; chain++) {
			uint32_t parent = MT_STOP_END;

			for (uint32_t depth = 0; depth < DEPTH; depth++) {
				uint32_t id = child(parent, chain % 7, chain * 16 + depth, false);

				ck_assert_uint_gt(id, parent);
				if (round)
					ck_assert_uint_eq(id, ids[chain * DEPTH + depth]);
				ids[chain * DEPTH + depth] = id;
				parent = id;
			}
		}
		ck_assert_uint_eq(mt_call_tree_end(&tree), MT_NODE_FIRST + CHAINS * DEPTH);
	}
	for (uint32_t i = 0; i < CHAINS * DEPTH; i++)
		ck_assert_uint_eq(mt_call_tree_node(&tree, ids[i])->frame.offset,
				  i / DEPTH * 16 + i % DEPTH);
	free(ids);
}
END_TEST

/* From a single child to more than a list has, each asked for in another order than before. */
START_TEST(families_of_all_sizes)
{
	enum { MOST = 40 };
	uint32_t parents[MOST], ids[MOST][MOST];

	for (uint32_t i = 0; i < MOST; i++)
		parents[i] = child(MT_STOP_END, 0, i, false);
	for (uint32_t n = 0; n < MOST; n++)
		for (uint32_t i = n; i < MOST; i++)
			ids[i][n] = child(parents[i], 1, n, false);
	for (uint32_t step = 1; step < 7; step++) {
		for (uint32_t i = 0; i < MOST; i++) {
			for (uint32_t n = 0; n <= i; n++) {
				uint32_t at = (n * step + 3) % (i + 1);

				ck_assert_uint_eq(child(parents[i], 1, at, false), ids[i][at]);
			}
		}
	}
	ck_assert_uint_eq(mt_call_tree_end(&tree), MT_NODE_FIRST + MOST + MOST * (MOST + 1) / 2);
}
END_TEST

START_TEST(ids_run_out)
{
	struct mt_frame frame = { .offset = 1 };
	uint32_t id = 7;

	mt_call_tree_done(&tree);
	ck_assert_int_eq(mt_call_tree_init(&tree, MT_NODE_FIRST + 2), 0);
	child(MT_STOP_END, 0, 1, false);
	child(MT_STOP_END, 0, 2, false);
	frame.offset = 3;
	ck_assert_int_eq(mt_call_tree_child(&tree, MT_STOP_END, &frame, &id), -EOVERFLOW);
	ck_assert_uint_eq(id, 7);
	/* What is there is found all the same. */
	ck_assert_uint_eq(child(MT_STOP_END, 0, 2, false), MT_NODE_FIRST + 1);
	mt_call_tree_done(&tree);
	ck_assert_int_eq(mt_call_tree_init(&tree, 3), 0);
	ck_assert_int_eq(mt_call_tree_child(&tree, MT_STOP_END, &frame, &id), -EOVERFLOW);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call_tree");
	TCase *tcase = tcase_create("call_tree");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, ids_are_counted_up);
	tcase_add_test(tcase, each_part_of_a_frame_counts);
	tcase_add_test(tcase, nodes_are_what_was_put_in);
	tcase_add_test(tcase, many);
	tcase_add_test(tcase, families_of_all_sizes);
	tcase_add_test(tcase, ids_run_out);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
