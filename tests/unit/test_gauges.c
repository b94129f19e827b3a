/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_gauges.c - rings that fill and empty, with the shim's own append, against what is known
 *                 of their fill
 *
 * Holds what collector/gauges.h promises: rows go on where the one before ended, and the
 * greatest fill is in one of them, also where it came and went between two rows, and
 * whatever a thread was doing when its mark was taken.
 */
#include "collector/gauges.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/ring_writer.h"

#define RING_BYTES 4096
#define CELL 32
#define STEPS 20000
#define ROUNDS 20000

static struct mt_segments *segments;
static struct mt_stats *stats;
static struct mt_gauges *gauges;
static struct mt_thread *head;
static int fd;

static void setup(void)
{
	struct mt_segments_config config = {
		.budget_bytes = 8192,
		.ring_bytes = RING_BYTES,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	fd = memfd_create("stats", MFD_CLOEXEC);
	ck_assert_int_eq(mt_stats_open(dup(fd), &stats), 0);
	ck_assert_int_eq(mt_gauges_new(stats, segments, NULL, &gauges), 0);
	head = mt_segments_thread(segments, 3);
}

static void teardown(void)
{
	mt_gauges_free(gauges);
	mt_segments_close(segments);
	close(fd);
}

static void take_ring(bool rseq)
{
	ring_writer_take(head, (void *)mt_segments_cells(segments, 3), RING_BYTES, 3,
			 segments->control, segments->gate, rseq);
}

static void consume(uint64_t bytes)
{
	__atomic_fetch_add(&head->tail, bytes, __ATOMIC_RELEASE);
}

static uint64_t fill(void)
{
	return head->head - head->tail;
}

struct row {
	uint64_t producer_before, producer_after, consumer_before, consumer_after, peak_bytes;
};

/* The rows of the ring, in order; the statistics are closed. */
static FILE *written(void)
{
	FILE *file;

	ck_assert_int_eq(mt_stats_close(stats), 0);
	file = fdopen(dup(fd), "r");
	ck_assert_ptr_nonnull(file);
	rewind(file);
	return file;
}

static bool next_row(FILE *file, struct row *ret)
{
	char line[1024];

	while (fgets(line, sizeof(line), file))
		if (sscanf(line,
			   "{\"type\":\"ring\",\"time_ns\":%*u,\"ring\":\"events:3\",\"start_ns\":%"
			   "*u,"
			   "\"producer_before\":%lu,\"producer_after\":%lu,\"consumer_before\":%lu,"
			   "\"consumer_after\":%lu,\"peak_bytes\":%lu}",
			   &ret->producer_before, &ret->producer_after, &ret->consumer_before,
			   &ret->consumer_after, &ret->peak_bytes) == 5)
			return true;
	return false;
}

START_TEST(burst_inside_a_pass)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	struct row row;
	int i;

	take_ring(_i % 2);
	for (i = 0; i < 10; i++)
		ring_writer_append();
	consume(10 * CELL);
	for (i = 0; i < 100; i++)
		ring_writer_append();
	consume(100 * CELL);
	for (i = 0; i < 5; i++)
		ring_writer_append();
	mt_gauges_read(gauges, 1);
	mt_gauges_read(gauges, 2); /* nothing moved: no row */
	consume(5 * CELL);
	ring_writer_append();
	mt_gauges_read(gauges, 3);

	file = written();
	ck_assert(next_row(file, &row));
	ck_assert_uint_eq(row.producer_after, 115 * CELL);
	ck_assert_uint_eq(row.consumer_after, 110 * CELL);
	ck_assert_uint_eq(row.peak_bytes, 100 * CELL);
	ck_assert(next_row(file, &row));
	ck_assert_uint_eq(row.producer_before, 115 * CELL);
	ck_assert_uint_eq(row.peak_bytes, CELL);
	ck_assert(!next_row(file, &row));
}
END_TEST

/* Any order of appends, passes and rows: each row has the peak that a model has. */
START_TEST(model)
{
	uint64_t *peaks = calloc(STEPS, sizeof(*peaks)), peak = 0, produced = 0, consumed = 0;
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	size_t n_rows = 0, n;
	bool moved = false;
	struct row row;

	ck_assert_ptr_nonnull(peaks);
	take_ring(_i % 2);
	srandom(1 + (unsigned)_i);
	for (int i = 0; i < STEPS; i++) {
		switch (random() % 8) {
		case 0:
			n = fill() ? (uint64_t)random() % (fill() / CELL + 1) : 0;
			consume(n * CELL);
			moved |= n > 0;
			break;
		case 1:
			mt_gauges_read(gauges, 1);
			/* What is on the ring is a fill, whoever saw it. */
			if (moved)
				peaks[n_rows++] = peak > fill() ? peak : fill();
			moved = false;
			peak = 0;
			break;
		default:
			for (n = (uint64_t)random() % 20; n > 0; n--) {
				ring_writer_append(); /* or finds it full, which is a fill, too */
				peak = fill() > peak ? fill() : peak;
				moved = true;
			}
		}
	}
	file = written();
	for (size_t i = 0; i < n_rows; i++) {
		ck_assert(next_row(file, &row));
		ck_assert_uint_eq(row.peak_bytes, peaks[i]);
		ck_assert_uint_eq(row.producer_before, produced);
		ck_assert_uint_eq(row.consumer_before, consumed);
		ck_assert_uint_le(row.consumer_after, row.producer_after);
		produced = row.producer_after;
		consumed = row.consumer_after;
	}
	ck_assert(!next_row(file, &row));
	ck_assert_uint_gt(n_rows, 1000);
	free(peaks);
}
END_TEST

/* How high the burst of a round gets, in cells; and the rounds that were begun and done. */
static uint32_t heights[ROUNDS];
static uint32_t begun, done;

static void await(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		sched_yield();
}

static void *produce(void *arg)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		await(&begun, round + 1);
		for (uint32_t i = 0; i < heights[round]; i++)
			ring_writer_append();
		__atomic_store_n(&done, round + 1, __ATOMIC_RELEASE);
	}
	return arg;
}

/* Marks that are taken while the thread raises them: of each burst, which is gone when its last
 * row is made, the top is in one of its rows. */
START_TEST(taken_while_raised)
{
	uint64_t peak = 0, end;
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	uint32_t round = 0;
	pthread_t thread;
	struct row row;

	take_ring(_i);
	srandom(7);
	for (round = 0; round < ROUNDS; round++)
		heights[round] = 1 + (uint32_t)random() % (RING_BYTES / CELL);
	ck_assert_int_eq(pthread_create(&thread, NULL, produce, NULL), 0);
	for (round = 0; round < ROUNDS; round++) {
		__atomic_store_n(&begun, round + 1, __ATOMIC_RELEASE);
		for (long reads = random() % 4; reads > 0; reads--)
			mt_gauges_read(gauges, 1);
		await(&done, round + 1);
		consume(fill());
		mt_gauges_read(gauges, 1);
	}
	pthread_join(thread, NULL);
	file = written();
	round = 0;
	end = heights[0] * CELL;
	while (next_row(file, &row)) {
		peak = row.peak_bytes > peak ? row.peak_bytes : peak;
		if (row.consumer_after != end)
			continue;
		ck_assert_uint_eq(peak, heights[round] * CELL);
		peak = 0;
		if (++round < ROUNDS)
			end += heights[round] * CELL;
	}
	ck_assert_uint_eq(round, ROUNDS);
}
END_TEST

/* A target's positions that make no sense end the ring's rows, and a mark is no more than that. */
START_TEST(hostile)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	struct row row;

	take_ring(true);
	ring_writer_append();
	head->peak_bytes = UINT64_MAX;
	mt_gauges_read(gauges, 1);
	head->head = 1ULL << 60;
	mt_gauges_read(gauges, 2);
	head->head = head->tail + CELL;
	mt_gauges_read(gauges, 3);
	file = written();
	ck_assert(next_row(file, &row));
	ck_assert_uint_eq(row.peak_bytes, RING_BYTES);
	ck_assert(!next_row(file, &row));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gauges");
	TCase *tcase = tcase_create("gauges");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, burst_inside_a_pass, 0, 2);
	tcase_add_loop_test(tcase, model, 0, 8);
	tcase_add_loop_test(tcase, taken_while_raised, 0, 2);
	tcase_add_test(tcase, hostile);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
