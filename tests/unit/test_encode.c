/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_encode.c - the encoder's thread: all is written, soon, and an error stops nobody
 */
#include "collector/encode.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/sample_artifact.h"

static const struct mt_header header = { .machine = "x86_64", .program = "test" };
static const struct mt_event event = { .type = MT_EVENT_FREE, .thread = 1, .address = 64 };

static struct mt_writer *writer;
static struct mt_encode *encode;
static int fd;

static void setup(void)
{
	fd = memfd_create("artifact", MFD_CLOEXEC);
	ck_assert_int_eq(mt_writer_new(dup(fd), &header, &writer), 0);
	ck_assert_int_eq(mt_encode_start(writer, NULL, &encode), 0);
}

static void teardown(void)
{
	mt_writer_free(writer);
	close(fd);
}

static void put_thread(void)
{
	static const struct mt_process process = { .id = 1 };
	static const struct mt_thread_info thread = { .id = 1, .process = 1 };

	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_PROCESS, &process), 0);
	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_THREAD, &thread), 0);
}

static int count(void *ctx, const struct mt_event *seen)
{
	++*(uint64_t *)ctx;
	return 0;
}

static uint64_t events_in_file(void)
{
	static const struct mt_reader_callbacks callbacks = { .event = count };
	struct mt_reader_result result;
	uint64_t n = 0;
	int again = memfd_create("copy", MFD_CLOEXEC);
	char block[65536];
	ssize_t len;
	off_t at = 0;

	/* A descriptor of our own: the writer's position is this one's. */
	while ((len = pread(fd, block, sizeof(block), at)) > 0)
		at += write(again, block, (size_t)len);
	lseek(again, 0, SEEK_SET);
	ck_assert_int_eq(mt_reader_read(again, &callbacks, &n, &result), 0);
	close(again);
	return n;
}

START_TEST(everything)
{
	static const struct mt_footer footer = { .events = 100000 };

	put_thread();
	for (int i = 0; i < 100000; i++)
		if (mt_encode_put(encode, MT_BATCH_EVENT, &event) < 0)
			ck_abort_msg("event %d", i);
	ck_assert_uint_eq(mt_encode_events(encode), 100000);
	ck_assert_int_eq(mt_encode_stop(encode), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	ck_assert_uint_eq(events_in_file(), 100000);
}
END_TEST

/* What was pushed is in the file although no more comes. */
START_TEST(soon)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };

	put_thread();
	ck_assert_int_eq(mt_encode_put(encode, MT_BATCH_EVENT, &event), 0);
	mt_encode_push(encode);
	mt_encode_push(encode); /* nothing */
	for (int i = 0; i < 500 && !events_in_file(); i++)
		nanosleep(&moment, NULL);
	ck_assert_uint_eq(events_in_file(), 1);
	ck_assert_int_eq(mt_encode_stop(encode), 0);
}
END_TEST

/* More than the queue holds, after the writer failed: nobody waits for ever. */
START_TEST(writer_fails)
{
	int error;

	put_thread();
	for (int i = 0; i < 1000000; i++) {
		struct mt_event bad = event;

		bad.thread = i ? 1 : 2; /* the first is of a thread that is not there */
		if (mt_encode_put(encode, MT_BATCH_EVENT, &bad) < 0)
			ck_abort_msg("event %d", i);
	}
	error = mt_encode_error(encode);
	ck_assert_int_eq(error, -EINVAL);
	ck_assert_int_eq(mt_encode_stop(encode), -EINVAL);
}
END_TEST

START_TEST(nothing)
{
	ck_assert_int_eq(mt_encode_stop(encode), 0);
	ck_assert_int_eq(mt_encode_stop(NULL), 0);
	ck_assert_uint_eq(events_in_file(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("encode");
	TCase *tcase = tcase_create("encode");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, everything);
	tcase_add_test(tcase, soon);
	tcase_add_test(tcase, writer_fails);
	tcase_add_test(tcase, nothing);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
