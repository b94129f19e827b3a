/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_stats.c - rows of statistics: their text, from many threads, and files that take none
 */
#include "collector/stats.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define THREADS 4
#define ROWS 20000
#define PROCESSES 16384

static struct mt_stats *stats;
static int fd;

static void setup(void)
{
	fd = memfd_create("stats", MFD_CLOEXEC);
	ck_assert_int_eq(mt_stats_open(dup(fd), &stats), 0);
}

static void teardown(void)
{
	close(fd);
}

/* What is in the file, closed with a NUL; and the statistics are. */
static char *written(void)
{
	off_t len;
	char *text;

	ck_assert_int_eq(mt_stats_close(stats), 0);
	len = lseek(fd, 0, SEEK_END);
	text = malloc((size_t)len + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(pread(fd, text, (size_t)len, 0), len);
	text[len] = '\0';
	ck_assert(!len || text[len - 1] == '\n');
	return text;
}

/* Whether the line, up to its end, is the pattern, in which # stands for some digits. */
static bool matches(const char *line, const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern != '#') {
			if (*line++ != *pattern)
				return false;
			continue;
		}
		if (!strspn(line, "0123456789"))
			return false;
		line += strspn(line, "0123456789");
	}
	return *line == '\n';
}

/* Lines that match. */
static uint64_t count(const char *text, const char *pattern)
{
	uint64_t n = 0;

	for (; *text; text = strchr(text, '\n') + 1)
		n += matches(text, pattern);
	return n;
}

START_TEST(texts)
{
	static const struct mt_stats_pause pauses[] = { { 12, 34 }, { 56, UINT64_MAX } };
	static const struct mt_stats_pressure pressure = {
		.ring = 77,
		.slot = 78,
		.by_signal = true,
		.latch_ns = 1,
		.release_ns = 2,
		.processes = pauses,
		.n_processes = 2,
	}, alone = { .ring = MT_STATS_STACKS, .latch_ns = 3, .release_ns = 4 };

	mt_stats_ring_open(stats, &(struct mt_stats_ring_open){ 5, 4096, 3072 });
	mt_stats_ring(stats, &(struct mt_stats_ring){ MT_STATS_LIFE, 1, 9, 2, 3, 4, 5, 6 });
	mt_stats_pressure(stats, &pressure);
	mt_stats_pressure(stats, &alone);
	mt_stats_resolve(stats, &(struct mt_stats_resolve){ 1, 2, 3, 4, 5 });
	mt_stats_drained(stats, 8);
	mt_stats_encode(stats, &(struct mt_stats_encode){ 1, 2, 3, 7, 5, 6 });

	mt_cleanup(mt_freep) char *text = written();

	ck_assert_uint_eq(count(text, "{\"type\":\"ring_open\",\"time_ns\":#,\"ring\":\"events:5\","
				      "\"bytes\":4096,\"watermark_bytes\":3072}"),
			  1);
	ck_assert_uint_eq(count(text,
				"{\"type\":\"ring\",\"time_ns\":9,\"ring\":\"life\",\"start_ns\":1,"
				"\"producer_before\":2,\"producer_after\":3,\"consumer_before\":4,"
				"\"consumer_after\":5,\"peak_bytes\":6}"),
			  1);
	ck_assert_uint_eq(count(text,
				"{\"type\":\"pressure\",\"time_ns\":#,\"ring\":\"events:77\","
				"\"slot\":78,\"pause\":\"signal\",\"latch_ns\":1,\"release_ns\":2,"
				"\"processes\":[{\"pid\":12,\"paused_ns\":34},"
				"{\"pid\":56,\"paused_ns\":18446744073709551615}]}"),
			  1);
	ck_assert_uint_eq(count(text, "{\"type\":\"pressure\",\"time_ns\":#,\"ring\":\"stacks\","
				      "\"slot\":0,\"pause\":\"futex\",\"latch_ns\":3,"
				      "\"release_ns\":4,\"processes\":[]}"),
			  1);
	ck_assert_uint_eq(count(text, "{\"type\":\"resolve\",\"time_ns\":#,\"start_ns\":1,"
				      "\"wait_ns\":2,\"events\":3,\"records\":4,\"chains\":5}"),
			  1);
	ck_assert_uint_eq(count(text, "{\"type\":\"encode\",\"time_ns\":#,\"wait_ns\":1,"
				      "\"encode_ns\":2,\"write_ns\":3,\"events\":7,"
				      "\"msgpack_bytes\":5,\"zstd_bytes\":6}"),
			  1);
	/* The last, at least, has it all. */
	ck_assert_uint_ge(count(text, "{\"type\":\"backlog\",\"time_ns\":#,\"drained\":8,"
				      "\"encoded\":7,\"rss_bytes\":#}"),
			  1);
}
END_TEST

/* Widest numbers everywhere: no row is cut. */
START_TEST(widest)
{
	struct mt_stats_ring ring;
	struct mt_stats_encode encode;

	memset(&ring, 0xff, sizeof(ring));
	memset(&encode, 0xff, sizeof(encode));
	ring.ring = MT_STATS_LIFE - 1;
	mt_stats_ring(stats, &ring);
	mt_stats_encode(stats, &encode);

	mt_cleanup(mt_freep) char *text = written();

	ck_assert_uint_eq(count(text, "{\"type\":\"ring\",\"time_ns\":18446744073709551615,"
				      "\"ring\":\"events:4294967293\",\"start_ns\":#,"
				      "\"producer_before\":#,\"producer_after\":#,"
				      "\"consumer_before\":#,\"consumer_after\":#,"
				      "\"peak_bytes\":18446744073709551615}"),
			  1);
	ck_assert_uint_eq(count(text, "{\"type\":\"encode\",\"time_ns\":#,\"wait_ns\":#,"
				      "\"encode_ns\":#,\"write_ns\":#,\"events\":#,"
				      "\"msgpack_bytes\":#,\"zstd_bytes\":18446744073709551615}"),
			  1);
}
END_TEST

/* All processes of the largest run, each at its longest, are a row. */
START_TEST(many_processes)
{
	static struct mt_stats_pause pauses[PROCESSES];
	const struct mt_stats_pressure pressure = { .processes = pauses, .n_processes = PROCESSES };
	uint64_t n = 0;

	memset(pauses, 0xff, sizeof(pauses));
	mt_stats_pressure(stats, &pressure);

	mt_cleanup(mt_freep) char *text = written();

	for (char *at = text; (at = strstr(at, "{\"pid\":4294967295,")); at++)
		n++;
	ck_assert_uint_eq(n, PROCESSES);
}
END_TEST

static void *put_rows(void *arg)
{
	uint64_t thread = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < ROWS; i++)
		mt_stats_resolve(stats, &(struct mt_stats_resolve){ thread, 0, i, 0, 0 });
	return NULL;
}

/* Many times what fits in the buffers: each row is there, whole, in its thread's order. */
START_TEST(threads)
{
	uint64_t next[THREADS] = { 0 }, thread, n;
	pthread_t ids[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&ids[i], NULL, put_rows, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);

	mt_cleanup(mt_freep) char *text = written();

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line,
			   "{\"type\":\"resolve\",\"time_ns\":%*u,\"start_ns\":%lu,\"wait_ns\":0,"
			   "\"events\":%lu,\"records\":0,\"chains\":0}",
			   &thread, &n) != 2) {
			ck_assert(matches(line, "{\"type\":\"backlog\",\"time_ns\":#,\"drained\":#,"
						"\"encoded\":#,\"rss_bytes\":#}"));
			continue;
		}
		ck_assert_uint_lt(thread, THREADS);
		ck_assert_uint_eq(n, next[thread]++);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_uint_eq(next[i], ROWS);
}
END_TEST

/* The first failure is kept, and what comes after costs nobody anything. */
START_TEST(full_disk)
{
	struct mt_stats *full;
	int device = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(device, 0);
	ck_assert_int_eq(mt_stats_open(device, &full), 0);
	stats = full;
	put_rows(NULL);
	ck_assert_int_eq(mt_stats_close(full), -ENOSPC);
}
END_TEST

/* A reader that does not read: rows are given up once, for good. */
START_TEST(stuck_reader)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(mt_stats_open(ends[1], &stats), 0);
	put_rows(NULL);
	put_rows(NULL);
	ck_assert_int_eq(mt_stats_close(stats), -ETIMEDOUT);
	close(ends[0]);
}
END_TEST

START_TEST(closed_reader)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	close(ends[0]);
	ck_assert_int_eq(mt_stats_open(ends[1], &stats), 0);
	put_rows(NULL);
	ck_assert_int_eq(mt_stats_close(stats), -EPIPE);
}
END_TEST

/* Without statistics nothing is done, by the same calls. */
START_TEST(none)
{
	stats = NULL;
	mt_stats_ring_open(stats, &(struct mt_stats_ring_open){ 0 });
	mt_stats_ring(stats, &(struct mt_stats_ring){ 0 });
	mt_stats_pressure(stats, &(struct mt_stats_pressure){ 0 });
	mt_stats_resolve(stats, &(struct mt_stats_resolve){ 0 });
	mt_stats_encode(stats, &(struct mt_stats_encode){ 0 });
	mt_stats_drained(stats, 1);
	ck_assert_int_eq(mt_stats_close(stats), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stats");
	TCase *rows = tcase_create("rows"), *files = tcase_create("files");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(rows, setup, teardown);
	tcase_set_timeout(rows, 120);
	tcase_add_test(rows, texts);
	tcase_add_test(rows, widest);
	tcase_add_test(rows, many_processes);
	tcase_add_test(rows, threads);
	suite_add_tcase(suite, rows);
	tcase_set_timeout(files, 120);
	tcase_add_test(files, full_disk);
	tcase_add_test(files, stuck_reader);
	tcase_add_test(files, closed_reader);
	tcase_add_test(files, none);
	suite_add_tcase(suite, files);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
