/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_merge.c - the merge by time, and segments below it: order, limits, hostile rings
 */
#include "collector/merge.h"

#include <check.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct mt_segments *segments;
static struct mt_merge *merge;
static struct mt_cell seen[100000];
static uint32_t seen_slot[100000];
static size_t n_seen;
static int fail_at = -1;
static char blob[8192]; /* the record of the last one handed on */

static void setup(void)
{
	struct mt_segments_config config = {
		.budget_bytes = 8192,
		.ring_bytes = 4096,
		.cookie = 42,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_merge_new(segments, &merge), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	ck_assert_uint_eq(welcome.first_slot, 0);
	n_seen = 0;
	fail_at = -1;
}

static void teardown(void)
{
	mt_merge_free(merge);
	mt_segments_close(segments);
}

static int on_cell(void *ctx, uint32_t slot, const struct mt_cell *cell)
{
	if ((int)n_seen == fail_at)
		return -EIO;
	if (MT_CELL_TYPE(cell->head) == MT_CELL_BLOB && MT_CELL_WORD(cell->head) < sizeof(blob))
		mt_merge_copy_blob(merge, blob);
	seen_slot[n_seen] = slot;
	seen[n_seen++] = *cell;
	return 0;
}

static void put(uint32_t slot, uint64_t head, uint64_t w0, uint64_t w1)
{
	struct mt_thread *thread = mt_segments_thread(segments, slot);
	struct mt_cell *cells = (struct mt_cell *)mt_segments_cells(segments, slot);

	cells[thread->head % 4096 / sizeof(*cells)] = (struct mt_cell){ head, { w0, w1, 0 } };
	thread->head += sizeof(*cells);
}

static void put_free(uint32_t slot, uint64_t time_ns)
{
	put(slot, MT_CELL_HEAD(MT_CELL_FREE, 10, 0, 0), time_ns, slot);
}

static int64_t pass(uint64_t below_ns, uint64_t max)
{
	mt_merge_heads(merge);
	return mt_merge_cells(merge, below_ns, max, on_cell, NULL);
}

/* Whether cells are left on a ring. */
static bool is_pending(void)
{
	for (uint32_t slot = 0; slot < MT_CHUNK_SLOTS; slot++) {
		const struct mt_thread *thread = mt_segments_thread(segments, slot);

		if (thread->tail != thread->head)
			return true;
	}
	return false;
}

START_TEST(by_time)
{
	for (uint64_t t = 1; t <= 300; t++)
		put_free((uint32_t)(t * 7 % 8 % 5), t);
	ck_assert_int_eq(pass(1000, 1000), 300);
	for (size_t i = 0; i < 300; i++)
		ck_assert_uint_eq(seen[i].w[0], i + 1);
	ck_assert(!is_pending());
}
END_TEST

START_TEST(strictly_below)
{
	put_free(0, 10);
	put_free(1, 20);
	put_free(1, 21);
	ck_assert_int_eq(pass(20, 1000), 1);
	ck_assert(is_pending());
	ck_assert_uint_eq(mt_segments_thread(segments, 1)->tail, 0);
	ck_assert_int_eq(pass(21, 1000), 1);
	ck_assert_int_eq(pass(UINT64_MAX, 1000), 1);
	ck_assert(!is_pending());
}
END_TEST

START_TEST(bounded_pass)
{
	for (uint64_t t = 1; t <= 100; t++)
		put_free(0, t);
	ck_assert_int_eq(pass(1000, 30), 30);
	ck_assert_uint_eq(mt_segments_thread(segments, 0)->tail, 30 * sizeof(struct mt_cell));
	ck_assert_int_eq(pass(1000, 1000), 70);
	ck_assert_uint_eq(seen[99].w[0], 100);
}
END_TEST

START_TEST(wraps)
{
	uint64_t t = 1;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 100; i++)
			put_free(3, t++);
		ck_assert_int_eq(pass(t, 1000), 100);
	}
	for (size_t i = 0; i < n_seen; i++)
		ck_assert_uint_eq(seen[i].w[0], i + 1);
}
END_TEST

START_TEST(pieces_at_once_modules_in_time)
{
	/* A stack piece does not wait; a module record's pieces have its time. */
	put(0, MT_CELL_HEAD(MT_CELL_PIECE, MT_RECORD_STACK, 0, 1 << 16 | 1), 999, 999);
	put_free(0, 50);
	put(1, MT_CELL_HEAD(MT_CELL_PIECE, MT_RECORD_MODULE, 0, 1 << 16 | 2), 0, 40);
	put(1, MT_CELL_HEAD(MT_CELL_PIECE, MT_RECORD_MODULE, 1, 1 << 16 | 2), 0, 0);
	put_free(2, 39);
	put_free(2, 41);
	ck_assert_int_eq(pass(1000, 1000), 6);
	ck_assert_uint_eq(seen_slot[0], 0);
	ck_assert_uint_eq(seen[1].w[0], 39);
	ck_assert_uint_eq(seen_slot[2], 1);
	ck_assert_uint_eq(seen_slot[3], 1);
	ck_assert_uint_eq(seen[4].w[0], 41);
	ck_assert_uint_eq(seen[5].w[0], 50);
}
END_TEST

/* A blob of that many bytes, each of them other than its neighbours'; says what it may. */
static void put_blob(uint32_t slot, uint32_t bytes, uint32_t said)
{
	struct mt_thread *thread = mt_segments_thread(segments, slot);
	char *cells = (char *)mt_segments_cells(segments, slot);
	uint64_t head = MT_CELL_HEAD(MT_CELL_BLOB, MT_RECORD_STACK, 0, said);

	memcpy(cells + thread->head % 4096, &head, sizeof(head));
	for (uint32_t i = 0; i < bytes; i++)
		cells[(thread->head + sizeof(head) + i) % 4096] = (char)(i * 7 + bytes);
	thread->head += mt_blob_cells(bytes) * sizeof(struct mt_cell);
}

/* Of every length, at every place in the ring, its end too. */
START_TEST(blobs)
{
	uint64_t t = 1;

	for (uint32_t bytes = 8; bytes <= 4096 - 64; bytes += 8 * (1 + bytes / 256)) {
		uint32_t cells = mt_blob_cells(bytes);
		size_t before = n_seen;

		ck_assert_uint_ge(cells * 32, bytes + 8);
		ck_assert_uint_lt(cells * 32, bytes + 8 + 32);
		put_blob(3, bytes, bytes);
		put_free(3, t);
		put_free(4, t + 1);
		memset(blob, 0, sizeof(blob));
		ck_assert_int_eq(pass(t + 2, 1000), cells + 2);
		ck_assert_uint_eq(n_seen, before + 3);
		ck_assert_uint_eq(MT_CELL_WORD(seen[before].head), bytes);
		for (uint32_t i = 0; i < bytes; i++)
			ck_assert_int_eq(blob[i], (char)(i * 7 + bytes));
		ck_assert_uint_eq(seen[before + 1].w[0], t);
		ck_assert_uint_eq(seen[before + 2].w[0], t + 1);
		ck_assert_uint_eq(mt_segments_thread(segments, 3)->tail,
				  mt_segments_thread(segments, 3)->head);
		t += 2;
	}
	ck_assert_uint_eq(mt_merge_damaged(merge), 0);
}
END_TEST

/* Whatever time seems to be in it, it is handed on before what is behind it, and at once. */
START_TEST(blobs_do_not_wait)
{
	put_free(0, 10);
	put_blob(0, 400, 400);
	put_free(0, 30);
	put_free(1, 5);
	put_free(1, 20);
	ck_assert_int_eq(pass(25, 1000), 3 + mt_blob_cells(400));
	ck_assert_uint_eq(seen[0].w[0], 5);
	ck_assert_uint_eq(seen[1].w[0], 10);
	ck_assert_uint_eq(MT_CELL_TYPE(seen[2].head), MT_CELL_BLOB);
	ck_assert_uint_eq(seen[3].w[0], 20);
	ck_assert(is_pending());
}
END_TEST

/* A blob that ends behind the head: the ring is given up, to its head, whatever is there. */
START_TEST(blobs_that_are_too_long)
{
	static const uint32_t said[] = { 33, 64, 4096, MT_RECORD_MAX_BYTES, UINT32_MAX - 100 };

	for (uint32_t i = 0; i < 5; i++) {
		put_free(i, i + 1);
		put_blob(i, 24, said[i]);
		if (i > 2)
			put_free(i, 3);
	}
	put_free(5, 7);
	ck_assert_int_eq(pass(1000, 1000), 6);
	ck_assert_uint_eq(mt_merge_damaged(merge), 5);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(mt_segments_thread(segments, i)->tail,
				  mt_segments_thread(segments, i)->head);
	/* As the first of a ring; and counted once. */
	put_blob(2, 24, 4096);
	put_free(3, 8);
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_uint_eq(mt_merge_damaged(merge), 5);
	ck_assert_uint_eq(mt_segments_thread(segments, 2)->tail,
			  mt_segments_thread(segments, 2)->head);
	/* A length whose cells can not be counted is one cell, for whoever looks at it. */
	put_blob(6, 24, UINT32_MAX);
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_uint_eq(MT_CELL_WORD(seen[n_seen - 1].head), UINT32_MAX);
}
END_TEST

START_TEST(hostile_heads)
{
	put_free(0, 1);
	mt_segments_thread(segments, 1)->head = 1ULL << 40;
	mt_segments_thread(segments, 2)->head = 31;
	mt_segments_thread(segments, 3)->head = (uint64_t)-32;
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_uint_eq(mt_merge_damaged(merge), 3);
	/* Their threads do not wait for room; each is counted once. */
	for (uint32_t slot = 1; slot < 4; slot++)
		ck_assert_uint_eq(mt_segments_thread(segments, slot)->tail,
				  mt_segments_thread(segments, slot)->head);
	mt_segments_thread(segments, 1)->head += 1ULL << 40;
	ck_assert_int_eq(pass(1000, 1000), 0);
	ck_assert_uint_eq(mt_merge_damaged(merge), 3);
	/* The writer can not make us read a cell again. */
	mt_segments_thread(segments, 0)->tail = 0;
	ck_assert_int_eq(pass(1000, 1000), 0);
}
END_TEST

/* A head between two cells leaves the tail there: nothing is read from it to the next whole cell,
 * which lies across the ring's end, and nothing behind that. */
START_TEST(head_between_cells)
{
	struct mt_thread *thread = mt_segments_thread(segments, 7);

	thread->head = 4096 - 31;
	ck_assert_int_eq(pass(1000, 1000), 0);
	thread->head = 4096;
	ck_assert_int_eq(pass(1000, 1000), 0);
	ck_assert_uint_eq(thread->tail, 4096);
	thread->head += 31;
	ck_assert_int_eq(pass(1000, 1000), 0);
	thread->head += 32;
	ck_assert_int_eq(pass(1000, 1000), 0);
	ck_assert_uint_eq(mt_merge_damaged(merge), 1);
	thread->head = 3 * 4096;
	ck_assert_int_eq(pass(1000, 1000), 0);
	put_free(7, 5);
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_uint_eq(seen[0].w[0], 5);
}
END_TEST

/* What comes after a head that was impossible is handed on again. */
START_TEST(recovers)
{
	mt_segments_thread(segments, 1)->head = 1ULL << 40;
	ck_assert_int_eq(pass(1000, 1000), 0);
	put_free(1, 5);
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_uint_eq(seen[0].w[0], 5);
	ck_assert_uint_eq(mt_merge_damaged(merge), 1);
}
END_TEST

/* No clock of ours shows such a time: nothing is to wait for it. */
START_TEST(times_to_come)
{
	put_free(0, UINT64_MAX);
	put_free(0, 7);
	put_free(1, UINT64_MAX / 2);
	ck_assert_int_eq(pass(1000, 1000), 3);
	ck_assert(!is_pending());
}
END_TEST

START_TEST(reached)
{
	for (uint64_t t = 1; t <= 10; t++)
		put_free(0, t);
	ck_assert_int_eq(pass(1000, 4), 4);
	ck_assert_uint_eq(mt_merge_reached_ns(merge), 5);
	ck_assert_int_eq(pass(8, 1000), 3);
	ck_assert_uint_eq(mt_merge_reached_ns(merge), 8);
	ck_assert_int_eq(pass(1000, 1000), 3);
	ck_assert_uint_eq(mt_merge_reached_ns(merge), 1000);
}
END_TEST

START_TEST(skips)
{
	for (uint64_t t = 1; t <= 10; t++)
		put_free(0, t);
	segments->control->latch = 1;
	mt_merge_skip(merge);
	ck_assert_uint_eq(mt_segments_thread(segments, 0)->tail, 10 * sizeof(struct mt_cell));
	ck_assert_uint_eq(segments->control->latch, 0);
	ck_assert_int_eq(pass(1000, 1000), 0);
	put_free(0, 11);
	ck_assert_int_eq(pass(1000, 1000), 1);
}
END_TEST

/* Whoever has the memory mapped sees that the collector is gone; a second run in the same
 * thread is its own. */
START_TEST(close_is_an_end)
{
	struct mt_segments_config config = {
		.budget_bytes = 8192, .ring_bytes = 4096, .control_fd = -1, .bpf_references_fd = -1
	};
	struct mt_segments *second, *third;
	struct mt_gate *gate;

	ck_assert_int_eq(mt_segments_open(&config, &second), 0);
	gate = mmap(NULL, sizeof(*gate), PROT_READ, MAP_SHARED, second->rings_fd, 0);
	ck_assert(gate != MAP_FAILED);
	ck_assert_uint_ne((uint32_t)gate->life[0] & FUTEX_TID_MASK, 0);
	mt_segments_close(second);
	ck_assert_uint_ne((uint32_t)gate->life[0] & FUTEX_OWNER_DIED, 0);
	munmap(gate, sizeof(*gate));
	ck_assert_int_eq(mt_segments_open(&config, &third), 0);
	mt_segments_close(third);
}
END_TEST

START_TEST(callback_fails)
{
	put_free(0, 1);
	put_free(0, 2);
	put_free(0, 3);
	fail_at = 1;
	ck_assert_int_eq(pass(1000, 1000), -EIO);
	ck_assert_uint_eq(mt_segments_thread(segments, 0)->tail, 2 * sizeof(struct mt_cell));
}
END_TEST

START_TEST(chunks_are_given_again)
{
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 2, &welcome), 0);
	ck_assert_uint_eq(welcome.first_slot, MT_CHUNK_SLOTS);
	/* The first has something to drain, then it has not. */
	put_free(0, 1);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1000000000, &welcome), 0);
	ck_assert_uint_eq(welcome.first_slot, MT_CHUNK_SLOTS);
	ck_assert_int_eq(pass(1000, 1000), 1);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1000000000, &welcome), 0);
	ck_assert_uint_eq(welcome.first_slot, 0);
	ck_assert_uint_eq(welcome.capture, MT_CAPTURE_INLINE);
	ck_assert_uint_ne(welcome.scratch_offset, 0);
}
END_TEST

START_TEST(all_chunks)
{
	struct mt_welcome welcome;

	for (int i = 1; i < MT_CHUNKS; i++)
		ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), -ENOSPC);
}
END_TEST

START_TEST(bad_sizes)
{
	static const uint32_t bad[][2] = { { 8192, 4095 }, { 8192, 2048 },   { 12288, 4096 },
					   { 2048, 4096 }, { 131072, 4096 }, { 0, 4096 } };
	struct mt_segments *none;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mt_segments_config config = { .budget_bytes = bad[i][0],
						     .ring_bytes = bad[i][1],
						     .control_fd = -1 };

		ck_assert_int_eq(mt_segments_open(&config, &none), -EINVAL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("merge");
	TCase *tcase = tcase_create("merge");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, by_time);
	tcase_add_test(tcase, strictly_below);
	tcase_add_test(tcase, bounded_pass);
	tcase_add_test(tcase, wraps);
	tcase_add_test(tcase, pieces_at_once_modules_in_time);
	tcase_add_test(tcase, blobs);
	tcase_add_test(tcase, blobs_do_not_wait);
	tcase_add_test(tcase, blobs_that_are_too_long);
	tcase_add_test(tcase, hostile_heads);
	tcase_add_test(tcase, head_between_cells);
	tcase_add_test(tcase, recovers);
	tcase_add_test(tcase, times_to_come);
	tcase_add_test(tcase, reached);
	tcase_add_test(tcase, skips);
	tcase_add_test(tcase, close_is_an_end);
	tcase_add_test(tcase, callback_fails);
	tcase_add_test(tcase, chunks_are_given_again);
	tcase_add_test(tcase, all_chunks);
	tcase_add_test(tcase, bad_sizes);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
