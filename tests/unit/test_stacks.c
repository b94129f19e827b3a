/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_stacks.c - names of stacks to nodes: in the order of seq, lost ones told, bounds kept
 */
#include "collector/stacks.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/inline_slot.h"
#include "wire/ring.h"

#define BUDGET 8192

static struct mt_segments *segments;
static struct mt_call_tree tree;
static struct mt_stacks *stacks;
static struct mt_space space;
static struct inline_slot slot;
static struct stack_player player;

static void setup(void)
{
	struct mt_segments_config config = { .budget_bytes = BUDGET,
					     .ring_bytes = 4096,
					     .control_fd = -1,
					     .bpf_references_fd = -1 };
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
	ck_assert_int_eq(mt_stacks_new(segments, &tree, &stacks), 0);
	mt_space_init(&space);
	slot_init(&slot, BUDGET);
	player_init(&player, BUDGET, 7);
}

static void teardown(void)
{
	player_done(&player);
	slot_done(&slot);
	mt_space_done(&space);
	mt_stacks_free(stacks);
	mt_call_tree_done(&tree);
	mt_segments_close(segments);
}

/* A window of a few words whose return address is pc; returns its name, ret_seq its seq. */
static uint16_t capture(uint64_t pc, uint32_t *ret_seq)
{
	__u64 mask[2] = { 0, 0 };
	uint64_t digest;

	player.start = player.bound - 8 * (MT_SAVED_WORDS + 1);
	player.end = player.bound;
	memset(player_word(&player, player.start), 0, 8 * (MT_SAVED_WORDS + 1));
	*player_word(&player, player.start + 8 * MT_SAVED_RIP) = pc;
	digest = slot_digest(&slot, &player, mask);
	slot_encode(&slot, &player, slot.reference->seq, mask);
	slot_commit(&slot);
	*ret_seq = slot.scratch->record.seq;
	return (uint16_t)(digest % MT_DICTIONARY);
}

static int push(uint32_t index)
{
	return mt_stacks_push(stacks, index, &slot.scratch->record, slot.scratch->record.len);
}

static uint32_t resolve(uint16_t name, uint32_t seq)
{
	uint32_t node = UINT32_MAX;

	ck_assert_int_eq(mt_stacks_resolve(stacks, 3, &space, name, seq, &node), 0);
	return node;
}

static uint64_t pc_of(uint32_t node)
{
	return node < MT_NODE_FIRST ? 0 : mt_call_tree_node(&tree, node)->frame.offset;
}

static struct mt_stacks_counts counts(void)
{
	struct mt_stacks_counts n;

	mt_stacks_counts(stacks, &n);
	return n;
}

/* All are there; each event gets the one that was its own at its seq. */
START_TEST(in_order)
{
	uint16_t names[50];
	uint32_t seqs[50];

	for (uint32_t i = 0; i < 50; i++) {
		names[i] = capture(1000 + i, &seqs[i]);
		ck_assert_int_eq(push(3), 0);
	}
	for (uint32_t i = 0; i < 50; i++)
		ck_assert_uint_eq(pc_of(resolve(names[i], seqs[i])), 1000 + i);
	/* A later event that names a known one. */
	ck_assert_uint_eq(pc_of(resolve(names[7], seqs[49])), 1007);
	ck_assert_uint_eq(counts().records, 50);
	ck_assert_uint_eq(counts().lost, 0);
}
END_TEST

START_TEST(names_that_are_none)
{
	ck_assert_uint_eq(resolve(MT_STACK_NONE | MT_NONE_BOOTSTRAP, 0), MT_STOP_BOOTSTRAP);
	ck_assert_uint_eq(counts().lost, 0);
	ck_assert_uint_eq(resolve(MT_STACK_NONE | MT_NONE_LOST, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve(0xffff, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve(MT_DICTIONARY, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve(MT_STACK_DETACHED | 3, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve(5, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve(5, UINT32_MAX), MT_STOP_LOST);
	ck_assert_uint_eq(counts().lost, 6);
}
END_TEST

/* A record that does not verify: its events say so, a key frame is asked for. */
START_TEST(damaged_record)
{
	struct mt_reference *reference = mt_segments_reference(segments, 3);
	uint64_t *entry;
	uint16_t name;
	uint32_t seq;

	name = capture(1000, &seq);
	entry = (uint64_t *)((char *)reference + MT_DICTIONARY_OFFSET) + name;
	*entry = slot.scratch->record.digest;
	((uint64_t *)(&slot.scratch->record + 1))[1] ^= 1;
	ck_assert_int_eq(push(3), 0);
	ck_assert_uint_eq(resolve(name, seq), MT_STOP_LOST);
	ck_assert_uint_eq(counts().mismatches, 1);
	ck_assert_uint_eq(counts().lost, 1);
	ck_assert_uint_eq(reference->resync_asked, 1);
	ck_assert_uint_eq(*entry, 0);
	/* The next is a delta against what the decoder does not have. */
	name = capture(1001, &seq);
	ck_assert_int_eq(push(3), 0);
	ck_assert_uint_eq(resolve(name, seq), MT_STOP_LOST);
	ck_assert_uint_eq(counts().stale, 1);
}
END_TEST

START_TEST(not_records)
{
	struct mt_stack_record head = { .len = sizeof(head), .kind = 99 };
	uint32_t seq;

	ck_assert_int_eq(mt_stacks_push(stacks, 3, &head, sizeof(head) - 1), 0);
	ck_assert_int_eq(mt_stacks_push(stacks, MT_SLOTS, &head, sizeof(head)), 0);
	head.len = sizeof(head) + 8;
	ck_assert_int_eq(mt_stacks_push(stacks, 3, &head, sizeof(head)), 0);
	head.len = 8;
	ck_assert_int_eq(mt_stacks_push(stacks, 3, &head, sizeof(head)), 0);
	ck_assert_uint_eq(counts().malformed, 4);
	ck_assert_uint_eq(counts().records, 0);
	head.len = sizeof(head);
	ck_assert_int_eq(mt_stacks_push(stacks, 3, &head, sizeof(head)), 0);
	capture(1000, &seq);
	ck_assert_uint_eq(resolve(0, seq), MT_STOP_LOST);
	ck_assert_uint_eq(counts().malformed, 5);
}
END_TEST

/* Records that no event asks for: refused when there are too many, and dropped on request,
 * of the slot that has the most. */
START_TEST(bounded)
{
	static char record[65536];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	uint16_t name;
	uint32_t seq, n = 0;
	int r;

	name = capture(1000, &seq);
	ck_assert_int_eq(push(3), 0);
	*head = (struct mt_stack_record){ .len = sizeof(record), .seq = 1000 };
	while ((r = mt_stacks_push(stacks, 5, record, sizeof(record))) == 0)
		n++;
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_uint_le((uint64_t)n * sizeof(record), MT_STACKS_WAITING_BYTES);
	mt_stacks_make_room(stacks);
	ck_assert_uint_eq(counts().dropped, n);
	ck_assert_uint_eq(mt_segments_reference(segments, 5)->resync_asked, n);
	ck_assert_int_eq(mt_stacks_push(stacks, 5, record, sizeof(record)), 0);
	/* The other slot's is still there. */
	ck_assert_uint_eq(pc_of(resolve(name, seq)), 1000);
	for (int i = 0; i < 3; i++)
		mt_stacks_make_room(stacks);
	ck_assert_uint_eq(counts().dropped, n + 1);
}
END_TEST

/* seq wraps. */
START_TEST(seq_wraps)
{
	uint16_t before, after;
	uint32_t seq;

	slot.reference->seq = 2 * (uint64_t)(UINT32_MAX - 1);
	before = capture(1000, &seq);
	ck_assert_uint_eq(seq, UINT32_MAX);
	ck_assert_int_eq(push(3), 0);
	after = capture(1001, &seq);
	ck_assert_uint_eq(seq, 0);
	ck_assert_int_eq(push(3), 0);
	ck_assert_uint_eq(pc_of(resolve(before, UINT32_MAX)), 1000);
	ck_assert_uint_eq(pc_of(resolve(after, 0)), 1001);
	ck_assert_uint_eq(pc_of(resolve(before, 1)), 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stacks");
	TCase *tcase = tcase_create("stacks");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, in_order);
	tcase_add_test(tcase, names_that_are_none);
	tcase_add_test(tcase, damaged_record);
	tcase_add_test(tcase, not_records);
	tcase_add_test(tcase, bounded);
	tcase_add_test(tcase, seq_wraps);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
