/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_keep.c - kept stacks in the artifact: their words in order, and each state of a space
 * once
 */
#include "collector/keep.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sample_artifact.h"
#include "wire/ring.h"
#include "wire/stack_delta.h"
#include "wire/stack_record.h"

#define WORDS 1024

static int fd;
static struct mt_writer *writer;
static struct mt_encode *encode;
static struct mt_keep *keep;
static struct mt_space space;
static uint64_t words[WORDS];
static struct mt_window window = {
	.start = 0x7000 - 24, .end = 0x7000 + 40, .words = words, .mask = WORDS - 1, .bottom = true
};

/* What came out. */
static uint32_t records, next_mappings, next_stack;
static uint32_t lens[1000], stack_mappings[1000];

static void setup(void)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "test" };
	static const struct mt_module module = { .path = "/a" };
	static const struct mt_process process = { .id = 1 };
	static const struct mt_thread_info thread = { .id = 1, .process = 1 };

	records = next_mappings = next_stack = 0;
	memset(lens, 0, sizeof(lens));
	fd = artifact_fd("", 0);
	ck_assert_int_eq(mt_writer_new(dup(fd), &header, &writer), 0);
	ck_assert_int_eq(mt_encode_start(writer, NULL, &encode), 0);
	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_MODULE, &module), 0);
	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_PROCESS, &process), 0);
	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_THREAD, &thread), 0);
	ck_assert_int_eq(mt_keep_new(encode, &keep), 0);
	mt_space_init(&space);
	for (size_t i = 0; i < WORDS; i++)
		words[i] = i;
}

static void teardown(void)
{
	mt_space_done(&space);
	mt_keep_free(keep);
	mt_writer_free(writer);
	close(fd);
}

static void map(struct mt_space *to, uint64_t start)
{
	struct mt_space_range range = { .start = start, .end = start + 1, .bias = 3 * start };

	ck_assert_int_eq(mt_space_add(to, &range), 0);
}

static void keep_one(const struct mt_space *by)
{
	struct mt_unwound_stack stack = {
		.window = &window, .space = by, .digest = 11, .epoch = 12, .node = MT_STOP_END
	};

	ck_assert_int_eq(mt_keep_stack(keep, 1, &stack), 0);
}

/* No assertion for each: Check writes a file with a line for each. */
static int see_mappings(void *ctx, const struct mt_mappings *mappings)
{
	records++;
	if (mappings->id == next_mappings)
		next_mappings++;
	for (uint32_t i = 0; i < mappings->len; i++)
		if (mappings->mappings[i].bias != 3 * mappings->mappings[i].start ||
		    mappings->mappings[i].flags)
			return -1;
	lens[mappings->id] += mappings->len;
	return 0;
}

static int see_stack(void *ctx, const struct mt_kept_stack *stack)
{
	if (stack->thread != 1 || stack->node != MT_STOP_END || stack->digest != 11 ||
	    stack->epoch != 12 || stack->flags != MT_KEPT_BOTTOM || stack->start != window.start ||
	    stack->end != window.end)
		return -1;
	for (uint64_t at = stack->start; at < stack->end; at += 8)
		if (stack->words[(at - stack->start) / 8] != (at / 8) % WORDS)
			return -1;
	stack_mappings[next_stack++] = stack->mappings;
	return 0;
}

static void read_back(void)
{
	static const struct mt_reader_callbacks callbacks = { .mappings = see_mappings,
							      .kept_stack = see_stack };
	static const struct mt_footer footer;
	struct mt_reader_result result;

	ck_assert_uint_eq(mt_encode_events(encode), 0);
	ck_assert_int_eq(mt_encode_stop(encode), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, NULL, &result), 0);
	ck_assert_str_eq(result.problem, "");
	ck_assert_uint_eq(next_stack, mt_keep_count(keep));
}

START_TEST(each_state_once)
{
	struct mt_space child;

	mt_space_init(&child);
	keep_one(&space);
	keep_one(&space);
	map(&space, 1);
	keep_one(&space);
	ck_assert_int_eq(mt_space_copy(&child, &space), 0);
	keep_one(&child);
	map(&child, 2);
	keep_one(&child);
	keep_one(&space);
	mt_space_done(&child);
	read_back();
	ck_assert_uint_eq(next_mappings, 3);
	ck_assert_uint_eq(records, 3);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(lens[i], i);
	ck_assert_mem_eq(stack_mappings, ((uint32_t[]){ 0, 0, 1, 1, 2, 1 }), 6 * 4);
}
END_TEST

/* More ranges than a record has: it goes on in the next. */
START_TEST(many_ranges)
{
	for (uint64_t i = 0; i < 2 * MT_MAPPINGS_LEN + 1; i++)
		map(&space, 2 * i);
	keep_one(&space);
	read_back();
	ck_assert_uint_eq(next_mappings, 1);
	ck_assert_uint_eq(records, 3);
	ck_assert_uint_eq(lens[0], 2 * MT_MAPPINGS_LEN + 1);
}
END_TEST

/* What was forgotten is put again, and never taken for another. */
START_TEST(many_states)
{
	struct mt_space others[2 * MT_KEEP_SPACES];

	keep_one(&space);
	for (uint32_t i = 0; i < 2 * MT_KEEP_SPACES; i++) {
		mt_space_init(&others[i]);
		map(&others[i], i);
		keep_one(&others[i]);
	}
	keep_one(&space);
	for (uint32_t i = 0; i < 2 * MT_KEEP_SPACES; i++)
		mt_space_done(&others[i]);
	read_back();
	ck_assert_uint_eq(next_stack, 2 * MT_KEEP_SPACES + 2);
	ck_assert_uint_eq(lens[stack_mappings[0]], 0);
	ck_assert_uint_eq(lens[stack_mappings[2 * MT_KEEP_SPACES + 1]], 0);
	for (uint32_t i = 1; i <= 2 * MT_KEEP_SPACES; i++)
		ck_assert_uint_eq(lens[stack_mappings[i]], 1);
}
END_TEST

static int on_unwound(void *ctx, const struct mt_unwound_stack *stack)
{
	struct mt_unwound_stack *ret = ctx;

	ck_assert_ptr_eq(stack->space, &space);
	ck_assert_uint_eq(stack->window->words[window.start / 8 & stack->window->mask], 1000);
	*ret = *stack;
	return -ECANCELED;
}

/* What a decoded window's observer is told; its error is passed on. */
START_TEST(observed)
{
	struct mt_segments_config config = {
		.budget_bytes = 4096, .ring_bytes = 4096, .control_fd = -1, .bpf_references_fd = -1
	};
	struct mt_unwound_stack seen = { 0 };
	struct mt_stacks_counts counts;
	struct mt_segments *segments;
	struct mt_call_tree tree;
	struct mt_stacks *stacks;
	__u64 block[MT_GROUP_WORDS] = { 1000 };
	struct {
		char head[56];
		uint64_t words[2]; /* a window of one word, and its digest */
	} record = { .words = { 1000 } };
	struct mt_stack_record head = {
		.len_words = sizeof(record) / 8,
		.slot = 3,
		.kind = MT_STACK_RAW,
		.seq = 5,
		.window_words = 1,
		.start = window.start,
		.epoch = 77,
	};
	uint32_t node;

	ck_assert_uint_eq(mt_stack_head_bytes(config.budget_bytes), sizeof(record.head));
	head.check = mt_stack_check(&head, 0);
	memcpy(record.head, &head, sizeof(record.head));
	record.words[1] = mt_digest_finish(head.start, head.start + 8, head.epoch,
					   mt_digest_part(mt_group_hash(block), 0));
	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
	ck_assert_int_eq(mt_stacks_new(segments, &tree, &stacks), 0);
	mt_stacks_observe(stacks, on_unwound, &seen);
	ck_assert_int_eq(mt_stacks_push(stacks, 3, &record, sizeof(record)), 0);
	ck_assert_uint_eq(seen.epoch, 0);
	mt_stacks_counts(stacks, &counts);
	ck_assert_uint_eq(counts.raw_records, 1);
	ck_assert_int_eq(mt_stacks_resolve(stacks, 3, &space, MT_STACK_ALONE | 5, 0, &node),
			 -ECANCELED);
	ck_assert(seen.raw);
	ck_assert_uint_eq(seen.digest, record.words[1]);
	ck_assert_uint_eq(seen.epoch, 77);
	ck_assert_uint_eq(seen.node, MT_STOP_TRUNCATED);
	mt_stacks_free(stacks);
	mt_call_tree_done(&tree);
	mt_segments_close(segments);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("keep");
	TCase *tcase = tcase_create("keep");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, each_state_once);
	tcase_add_test(tcase, many_ranges);
	tcase_add_test(tcase, many_states);
	tcase_add_test(tcase, observed);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
