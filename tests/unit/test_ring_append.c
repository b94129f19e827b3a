/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_ring_append.c - appends that signal handlers interrupt, and leave
 *
 * Holds the invariants of preload/ring.c: a cell is on the ring whole and once, or not at
 * all, whatever comes between; both ways of appending.
 */
#include "preload/ring.h"

#include <check.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/real.h"
#include "preload/session.h"

#define RING_BYTES (64 * 1024)
#define SLOT 77
#define SIGNALS 5000
#define SECONDS_MAX 5
#define BURST 100

#define FROM_MAIN 1
#define FROM_HANDLER 2

struct mt_session mt_session;
struct mt_libc mt_libc;
int64_t mt_clock_offset_ns;
bool mt_sandbox, mt_sandbox_clock;

static bool orphaned;
static uint64_t fork_word = MT_FORK_BUSY + 1;

uint64_t mt_sandbox_now_ns(void)
{
	return mt_read_clock_ns(CLOCK_MONOTONIC);
}

void mt_session_end(void)
{
	mt_session.on = 0;
}

bool mt_session_orphaned(void)
{
	return orphaned;
}

static struct mt_thread head;
static struct mt_gate gate;
static struct mt_control control;
static char cells[RING_BYTES] __attribute__((aligned(4096)));
static struct mt_ring ring;

static volatile uint64_t n_handler;
static volatile sig_atomic_t n_signals;
static sigjmp_buf back;

static struct mt_cell cell_of(uint64_t from, uint64_t n)
{
	return (struct mt_cell){ .head = from, .w = { n, ~n, n * 0x9e3779b97f4a7c15ULL + from } };
}

static void set_interval(long microseconds)
{
	struct itimerval timer = {
		.it_interval.tv_usec = microseconds,
		.it_value.tv_usec = microseconds,
	};

	if (setitimer(ITIMER_REAL, &timer, NULL))
		abort();
}

static void set_timer(void (*handler)(int), long microseconds)
{
	signal(SIGALRM, handler);
	set_interval(microseconds);
}

static bool time_is_up(void)
{
	static time_t end;
	time_t now = time(NULL);

	if (!end)
		end = now + SECONDS_MAX;
	return now > end;
}

/*
 * Where the machine takes longer for a signal than the timer's interval, the program that
 * it interrupts gets no further: it is the handler that puts an end to the signals.
 */
static void count_signal(void)
{
	if (++n_signals >= SIGNALS || time_is_up())
		set_interval(0);
}

static bool signals_are_over(void)
{
	return n_signals >= SIGNALS || time_is_up();
}

static void append_in_handler(int signal)
{
	int i;

	count_signal();
	/* Nobody would take what a full ring has the interrupted append wait for. */
	if (head.head - head.tail > RING_BYTES / 2)
		return;
	for (i = 0; i < 3; i++) {
		struct mt_cell cell = cell_of(FROM_HANDLER, n_handler);

		if (mt_ring_try(&ring, &cell))
			n_handler++;
	}
}

static void leave_by_jump(int signal)
{
	count_signal();
	siglongjmp(back, 1);
}

static void set_up(bool rseq)
{
	memset(&head, 0, sizeof(head));
	memset(cells, 0, sizeof(cells));
	memset(&control, 0, sizeof(control));
	ring = (struct mt_ring){ .head = &head,
				 .cells = cells,
				 .bytes = RING_BYTES,
				 .rseq = rseq,
				 .slot = SLOT,
				 .watermark = RING_BYTES / 4 * 3 };
	mt_session.control = &control;
	mt_session.gate = &gate;
	mt_session.fork_word = &fork_word;
	mt_libc.clock_gettime = clock_gettime;
	n_handler = 0;
	n_signals = 0;
}

/* What the reader has seen of each. */
static volatile uint64_t seen[3];

/*
 * Takes what is on the ring, with signals blocked.  Each writer's numbers follow one
 * another; where appends may be left by a jump, the same one may come twice.
 */
static void take(bool may_repeat)
{
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (; head.tail < head.head; head.tail += sizeof(struct mt_cell)) {
		struct mt_cell cell, want;
		uint64_t n;

		memcpy(&cell, cells + (head.tail & (RING_BYTES - 1)), sizeof(cell));
		ck_assert(cell.head == FROM_MAIN || cell.head == FROM_HANDLER);
		n = cell.w[0];
		want = cell_of(cell.head, n);
		ck_assert_mem_eq(&cell, &want, sizeof(cell));
		if (n == seen[cell.head])
			seen[cell.head]++;
		else
			ck_assert(may_repeat && n + 1 == seen[cell.head]);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static bool rseq_is_registered(void)
{
	return __rseq_size != 0;
}

static void interrupted_by_appends(bool rseq)
{
	uint64_t n = 0;
	int i;

	set_up(rseq);
	memset((void *)seen, 0, sizeof(seen));
	set_timer(append_in_handler, 20);
	while (!signals_are_over()) {
		for (i = 0; i < BURST; i++, n++) {
			struct mt_cell cell = cell_of(FROM_MAIN, n);

			ck_assert(mt_ring_append(&ring, &cell));
		}
		take(false);
	}
	set_timer(SIG_IGN, 0);
	take(false);
	ck_assert_int_gt(n_signals, 0);
	ck_assert_uint_eq(seen[FROM_MAIN], n);
	ck_assert_uint_eq(seen[FROM_HANDLER], n_handler);
}

static void left_by_jumps(bool rseq)
{
	static volatile uint64_t n, refused;
	static volatile bool armed;

	set_up(rseq);
	armed = false;
	memset((void *)seen, 0, sizeof(seen));
	n = 0;
	refused = 0;
	/* No call of Check's, nor of anything else that a jump must not leave. */
	sigsetjmp(back, 1);
	if (!armed) {
		sigset_t alarm_only;

		/* The timer's own start included: Check writes under a lock of stdio. */
		armed = true;
		sigemptyset(&alarm_only);
		sigaddset(&alarm_only, SIGALRM);
		sigprocmask(SIG_BLOCK, &alarm_only, NULL);
		set_timer(leave_by_jump, 20);
		sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
	}
	while (!signals_are_over()) {
		volatile int i;

		/* First: where all is slow, no burst comes to its end. */
		take(true);
		for (i = 0; i < BURST; i++) {
			struct mt_cell cell = cell_of(FROM_MAIN, n);

			refused += !mt_ring_try(&ring, &cell);
			n++;
		}
	}
	set_timer(SIG_IGN, 0);
	take(true);
	ck_assert_int_gt(n_signals, 0);
	ck_assert_uint_eq(refused, 0);
	ck_assert_uint_ge(seen[FROM_MAIN], n);
	ck_assert_uint_le(seen[FROM_MAIN], n + 1);
}

START_TEST(handlers_append_rseq)
{
	if (rseq_is_registered())
		interrupted_by_appends(true);
}
END_TEST

START_TEST(handlers_append_helped)
{
	interrupted_by_appends(false);
}
END_TEST

START_TEST(handlers_jump_rseq)
{
	if (rseq_is_registered())
		left_by_jumps(true);
}
END_TEST

START_TEST(handlers_jump_helped)
{
	left_by_jumps(false);
}
END_TEST

/* Whatever a head is damaged to, nothing behind the ring is written to. */
START_TEST(damaged_head)
{
	static char room[RING_BYTES + sizeof(struct mt_cell)] __attribute__((aligned(4096)));
	struct mt_cell cell = cell_of(~0ULL, ~0ULL);

	set_up(_i && rseq_is_registered());
	ring.cells = room;
	head.head = head.tail = RING_BYTES - 1;
	ck_assert(mt_ring_try(&ring, &cell));
	for (size_t at = RING_BYTES; at < sizeof(room); at++)
		ck_assert_int_eq(room[at], 0);
}
END_TEST

#define FORKS 200

static volatile sig_atomic_t n_forks;
static volatile bool is_child;

static void fork_in_handler(int signal)
{
	if (is_child || n_forks == FORKS)
		return;
	n_forks++;
	is_child = fork() == 0;
}

/* A fork's child that comes back from there into its parent's append does nothing to the ring. */
START_TEST(handlers_fork)
{
	const size_t bytes = sizeof(struct mt_thread) + RING_BYTES;
	struct mt_cell cell = cell_of(FROM_MAIN, 0);
	struct mt_thread *shared;
	uint64_t n = 0, *word;

	if (!rseq_is_registered())
		return;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	ck_assert(shared != MAP_FAILED && word != MAP_FAILED);
	ck_assert_int_eq(madvise(word, sizeof(*word), MADV_WIPEONFORK), 0);
	set_up(true);
	*word = fork_word;
	mt_session.fork_word = word;
	ring.head = shared;
	ring.cells = (char *)(shared + 1);
	n_forks = 0;
	set_timer(fork_in_handler, 500);
	while (n_forks < FORKS) {
		for (int i = 0; i < BURST && mt_ring_try(&ring, &cell) && !is_child; i++)
			n++;
		if (is_child)
			_exit(0);
		shared->tail = shared->head;
	}
	set_timer(SIG_IGN, 0);
	while (wait(NULL) > 0)
		;
	ck_assert_uint_eq(shared->head, n * sizeof(cell));
	munmap(word, sizeof(*word));
	munmap(shared, bytes);
}
END_TEST

static void count_step(int signal)
{
	n_signals++;
}

#define TRAP_FLAG 0x100UL

static void step(bool on)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~TRAP_FLAG);
}

static bool append_blob(void)
{
	uint64_t words[sizeof(struct mt_cell) / 8 * 3] = { 0 };

	return mt_ring_append_blob(&ring, MT_RECORD_STACK, words, 2 * MT_PIECE_BYTES);
}

/* Who is stepped appends, too, and once: no restartable sequence comes to an end there. */
START_TEST(stepped)
{
	struct mt_cell first = cell_of(FROM_MAIN, 0), second = cell_of(FROM_MAIN, 1);
	bool blob_on = false, first_on, second_on;

	set_up(_i && rseq_is_registered());
	memset((void *)seen, 0, sizeof(seen));
	signal(SIGTRAP, count_step);
	step(true);
	if (_i == 2)
		blob_on = append_blob();
	first_on = mt_ring_try(&ring, &first);
	step(false);
	signal(SIGTRAP, SIG_DFL);
	second_on = mt_ring_try(&ring, &second);
	ck_assert_int_gt(n_signals, 0);
	ck_assert(!blob_on && first_on && second_on);
	ck_assert(!mt_ring_takes_blob(&ring, 2 * MT_PIECE_BYTES));
	take(false);
	ck_assert_uint_eq(seen[FROM_MAIN], 2);
}
END_TEST

/* A full ring takes nothing; its peak says so. */
START_TEST(full_ring)
{
	struct mt_cell cell = cell_of(FROM_MAIN, 0);
	uint64_t n;

	set_up(_i && rseq_is_registered());
	for (n = 0; n < RING_BYTES / sizeof(cell); n++)
		ck_assert(mt_ring_try(&ring, &cell));
	ck_assert(!mt_ring_try(&ring, &cell));
	ck_assert_uint_eq(head.head, RING_BYTES);
	ck_assert_uint_eq(head.peak_bytes, RING_BYTES);
	head.tail += sizeof(cell);
	ck_assert(mt_ring_try(&ring, &cell));
	ck_assert_uint_eq(head.head, RING_BYTES + sizeof(cell));
}
END_TEST

/* Whoever waits for a collector that is gone goes on, and what it gave up is counted; also who
 * may not sleep. */
START_TEST(gone_collector)
{
	struct mt_cell cell = cell_of(FROM_MAIN, 0);

	set_up(false);
	while (mt_ring_try(&ring, &cell))
		;
	orphaned = true;
	mt_sandbox = _i;
	mt_session.on = 1;
	ck_assert(!mt_ring_append(&ring, &cell));
	ck_assert_int_eq(mt_session.on, 0);
	ck_assert_uint_eq(control.lost_events, 1);
	ck_assert_uint_ne(control.latch, 0);
}
END_TEST

/* The fill latches from the watermark on, once; the latch says who did, and when. */
START_TEST(watermark)
{
	struct mt_cell cell = cell_of(FROM_MAIN, 0);
	uint64_t before, n;

	set_up(_i && rseq_is_registered());
	before = mt_now_ns();
	for (n = 1; n < ring.watermark / sizeof(cell); n++)
		ck_assert(mt_ring_append_event(&ring, &cell));
	ck_assert_uint_eq(control.latch, 0);
	ck_assert(mt_ring_append_event(&ring, &cell));
	ck_assert_uint_eq(MT_LATCH_RING(control.latch), MT_LATCH_THREAD);
	ck_assert_uint_eq(MT_LATCH_SLOT(control.latch), SLOT);
	ck_assert_uint_ge(mt_latch_ns(control.latch, mt_now_ns()), before);
	ck_assert_uint_le(mt_latch_ns(control.latch, mt_now_ns()), mt_now_ns());
	control.latch = 1;
	ck_assert(mt_ring_append_event(&ring, &cell));
	ck_assert_uint_eq(control.latch, 1);
	control.latch = 0;
	ck_assert(mt_ring_append_event(&ring, &cell));
	ck_assert_uint_ne(control.latch, 0);
}
END_TEST

static void *release_soon(void *unused)
{
	while (!__atomic_load_n(&head.parked_in, __ATOMIC_ACQUIRE))
		;
	__atomic_store_n(&control.latch, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&gate.futex, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &gate.futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return NULL;
}

/* Parks until the release, and leaves behind for which episode, and since when. */
START_TEST(parks)
{
	pthread_t other;
	uint64_t latch;

	set_up(false);
	control.enabled = 1;
	mt_sandbox = _i;
	control.latch = latch = MT_LATCH(MT_LATCH_STACKS, 5, mt_now_ns());
	ck_assert_int_eq(pthread_create(&other, NULL, release_soon, NULL), 0);
	mt_ring_heed(&ring);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	ck_assert_uint_eq(head.parked_in, latch);
	ck_assert_uint_ge(head.parked_ns, mt_latch_ns(latch, mt_now_ns()));
}
END_TEST

/* Nobody parks where the collector stops processes, where nobody waits, after a run. */
START_TEST(parks_not)
{
	set_up(false);
	control.enabled = _i != 2;
	control.latch = MT_LATCH(MT_LATCH_STACKS, 5, mt_now_ns());
	control.pause = _i == 0 ? MT_PAUSE_SIGNAL : _i == 1 ? MT_PAUSE_NEVER : MT_PAUSE_FUTEX;
	mt_ring_heed(&ring);
	ck_assert_uint_eq(head.parked_in, 0);
}
END_TEST

/* A run that never waits gives events up, and counts them. */
START_TEST(never_waits)
{
	struct mt_cell cell = cell_of(FROM_MAIN, 0);

	set_up(_i && rseq_is_registered());
	control.pause = MT_PAUSE_NEVER;
	while (mt_ring_append_event(&ring, &cell))
		;
	ck_assert_uint_eq(head.head, RING_BYTES);
	ck_assert_uint_eq(control.lost_events, 1);
	ck_assert(mt_ring_gives_up(&ring));
	ck_assert(!mt_ring_await_release(&ring, 1));
}
END_TEST

/* The thread that held the ring before died between the two halves of a helped append. */
START_TEST(taken_over)
{
	struct mt_cell cell = cell_of(FROM_MAIN, 7), want = cell;

	set_up(false);
	memcpy(head.staged, &cell, sizeof(cell));
	head.staged_at = 0;
	head.staged_seq = 5;
	mt_ring_take_over(&ring);
	mt_ring_take_over(&ring);
	ck_assert_uint_eq(head.head, sizeof(cell));
	ck_assert_uint_eq(head.staged_seq, 6);
	ck_assert_mem_eq(cells, &want, sizeof(want));
}
END_TEST

/* Every length of a record arrives in as many pieces as its head says. */
START_TEST(pieces)
{
	struct mt_piece_writer writer;
	uint32_t words = _i + 1, i;

	set_up(false);
	mt_piece_begin(&writer, &ring, MT_RECORD_MODULE, 9, words * 8);
	for (i = 0; i < words; i++)
		mt_piece_word(&writer, i + 1);
	ck_assert(mt_piece_end(&writer));
	ck_assert_uint_eq(head.head, (words + 2) / 3 * sizeof(struct mt_cell));
	for (i = 0; i < (words + 2) / 3 * 3; i++) {
		const struct mt_cell *cell = (const struct mt_cell *)cells + i / 3;

		ck_assert_uint_eq(cell->head, MT_CELL_HEAD(MT_CELL_PIECE, MT_RECORD_MODULE, i / 3,
							   9 << 16 | (words + 2) / 3));
		ck_assert_uint_eq(cell->w[i % 3], i < words ? i + 1 : 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_append");
	TCase *tests = tcase_create("ring_append");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 10 * SECONDS_MAX);
	tcase_add_test(tests, handlers_append_rseq);
	tcase_add_test(tests, handlers_append_helped);
	tcase_add_test(tests, handlers_jump_rseq);
	tcase_add_test(tests, handlers_jump_helped);
	tcase_add_test(tests, handlers_fork);
	tcase_add_loop_test(tests, damaged_head, 0, 2);
	tcase_add_loop_test(tests, stepped, 0, 3);
	tcase_add_loop_test(tests, full_ring, 0, 2);
	tcase_add_loop_test(tests, gone_collector, 0, 2);
	tcase_add_loop_test(tests, watermark, 0, 2);
	tcase_add_loop_test(tests, parks, 0, 2);
	tcase_add_loop_test(tests, parks_not, 0, 3);
	tcase_add_loop_test(tests, never_waits, 0, 2);
	tcase_add_test(tests, taken_over);
	tcase_add_loop_test(tests, pieces, 0, 8);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
