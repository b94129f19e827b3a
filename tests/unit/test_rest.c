/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_rest.c - when the collector rests, and that the shim's own waiting ends that
 *
 * Holds what collector/rest.h promises: no rest where something comes, or is latched; who parks,
 * or finds no room, rings; nobody else does.  And that what others write in the gate keeps nobody.
 */
#include "collector/rest.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "collector/clock.h"
#include "tests/unit/ring_writer.h"

#define RING_BYTES 4096
#define SLOT 3
/* Until who is to ring has been given up; and until who is not to has not. */
#define PATIENCE_MS 60000
#define MOMENT_MS 20
#define ROUNDS 500

static struct mt_segments *segments;
static struct mt_rest *rest;
static uint64_t now_ns;

static void setup(void)
{
	const struct mt_segments_config config = {
		.budget_bytes = 8192,
		.ring_bytes = RING_BYTES,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	ring_writer_take(mt_segments_thread(segments, SLOT),
			 (void *)mt_segments_cells(segments, SLOT), RING_BYTES, SLOT,
			 segments->control, segments->gate, false);
	ck_assert_int_eq(mt_rest_new(segments, &rest), 0);
	now_ns = mt_clock_ns();
}

static void teardown(void)
{
	mt_rest_free(rest);
	mt_segments_close(segments);
}

static void pass(uint64_t cells)
{
	now_ns += MT_REST_QUIET_NS;
	mt_rest_note(rest, cells, now_ns);
}

static bool is_rung(int wait_ms)
{
	struct pollfd fd = { .fd = mt_rest_fd(rest), .events = POLLIN };

	return poll(&fd, 1, wait_ms) == 1;
}

static void latch(void)
{
	__atomic_store_n(&segments->control->latch, MT_LATCH(MT_LATCH_LIFE, 0, now_ns),
			 __ATOMIC_SEQ_CST);
}

START_TEST(where_next_to_nothing_comes)
{
	const uint64_t few = RING_BYTES / sizeof(struct mt_cell) / MT_REST_RING_SHARE;

	ck_assert(!mt_rest_begin(rest));
	pass(few);
	ck_assert(mt_rest_begin(rest));
	ck_assert_uint_eq(segments->gate->rests, MT_REST_ON);
	mt_rest_end(rest, false);
	ck_assert_uint_eq(segments->gate->rests, MT_REST_NONE);
	pass(few + 1);
	ck_assert(!mt_rest_begin(rest));
	ck_assert_uint_eq(segments->gate->rests, MT_REST_NONE);
	/* Each is few, all are not. */
	for (uint64_t i = 0; i <= few; i++)
		mt_rest_note(rest, 1, now_ns);
	ck_assert(!mt_rest_begin(rest));
	pass(0);
	ck_assert(mt_rest_begin(rest));
}
END_TEST

START_TEST(not_where_a_ring_is_latched)
{
	pass(0);
	latch();
	ck_assert(!mt_rest_begin(rest));
	ck_assert_uint_eq(segments->gate->rests, MT_REST_NONE);
	mt_segments_release(segments);
	pass(0);
	ck_assert(mt_rest_begin(rest));
}
END_TEST

START_TEST(not_where_nobody_rings)
{
	pass(0);
	if (_i < 2)
		segments->pause = _i ? MT_PAUSE_SIGNAL : MT_PAUSE_NEVER;
	segments->control->sandboxed = _i == 2;
	ck_assert(!mt_rest_begin(rest));
}
END_TEST

static void *park(void *unused)
{
	latch();
	ring_writer_heed();
	return NULL;
}

/* It latches, too. */
static void *fill_up(void *unused)
{
	for (size_t i = 0; i <= RING_BYTES / sizeof(struct mt_cell); i++)
		ring_writer_wait_and_append();
	return NULL;
}

START_TEST(who_waits_rings)
{
	struct mt_thread *head = mt_segments_thread(segments, SLOT);
	pthread_t thread;

	pass(0);
	ck_assert(mt_rest_begin(rest));
	ck_assert(!is_rung(0));
	ck_assert_int_eq(pthread_create(&thread, NULL, _i ? fill_up : park, NULL), 0);
	ck_assert(is_rung(PATIENCE_MS));
	mt_rest_end(rest, true);
	__atomic_store_n(&head->tail, head->head, __ATOMIC_RELEASE);
	mt_segments_release(segments);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	mt_segments_release(segments);
	ck_assert(!mt_rest_begin(rest));
	/* That was of another rest. */
	pass(0);
	ck_assert(mt_rest_begin(rest));
	ck_assert(!is_rung(0));
}
END_TEST

/* It parks, but the collector does not rest, or no system call may be made for it. */
START_TEST(who_is_quiet)
{
	struct mt_thread *head = mt_segments_thread(segments, SLOT);
	pthread_t thread;

	ring_writer_sandbox(_i);
	if (_i) {
		pass(0);
		ck_assert(mt_rest_begin(rest));
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, park, NULL), 0);
	while (!__atomic_load_n(&head->parked_in, __ATOMIC_ACQUIRE))
		;
	ck_assert(!is_rung(MOMENT_MS));
	mt_segments_release(segments);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ring_writer_sandbox(false);
}
END_TEST

static bool forges, has_forged;

/* A process of the run that writes where it has no business. */
static void *forge(void *unused)
{
	while (__atomic_load_n(&forges, __ATOMIC_RELAXED)) {
		__atomic_store_n(&segments->gate->rests, MT_REST_NONE, __ATOMIC_RELAXED);
		__atomic_store_n(&has_forged, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

START_TEST(ends_whatever_the_gate_says)
{
	pthread_t thread;

	forges = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, forge, NULL), 0);
	while (!__atomic_load_n(&has_forged, __ATOMIC_RELAXED))
		;
	for (int i = 0; i < ROUNDS; i++) {
		mt_rest_free(rest);
		ck_assert_int_eq(mt_rest_new(segments, &rest), 0);
	}
	__atomic_store_n(&forges, false, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rest");
	TCase *tcase = tcase_create("rest");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, where_next_to_nothing_comes);
	tcase_add_test(tcase, not_where_a_ring_is_latched);
	tcase_add_loop_test(tcase, not_where_nobody_rings, 0, 3);
	tcase_add_loop_test(tcase, who_waits_rings, 0, 2);
	tcase_add_loop_test(tcase, who_is_quiet, 0, 2);
	tcase_add_test(tcase, ends_whatever_the_gate_says);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
