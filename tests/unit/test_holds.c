/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_holds.c - processes are stopped and continued, and what others want is kept to
 *
 * Holds what collector/holds.h says of whose a stop is, with real processes and signals.
 */
#include "collector/holds.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/proc_state.h"

/* Long enough for anything that happens at all. */
#define SECONDS_MAX 20

static struct mt_holds *holds;
static uint32_t not_ours;
/* Shared with the children: signals that a handler has seen. */
static volatile sig_atomic_t *caught;
static pid_t child;

static bool is_ours(void *ctx, uint32_t tgid)
{
	return tgid != not_ours;
}

static void count(int signo)
{
	(*caught)++;
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

static void live(int threads, const int *ready)
{
	struct sigaction catching = { .sa_handler = count };
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGTSTP, &catching, NULL);
	while (threads-- > 1)
		if (pthread_create(&thread, NULL, idle, NULL))
			_exit(1);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	idle(NULL);
}

static pid_t start(int threads)
{
	int ready[2];
	pid_t tgid;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	tgid = fork();
	ck_assert_int_ge(tgid, 0);
	if (tgid == 0)
		live(threads, ready);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return tgid;
}

/* For a process that is in vfork(): what it has its child wait for, and says. */
static int gate[2], said[2];

static void *wait_for_child(void *unused)
{
	pid_t vforked = vfork();
	char byte = 0;

	if (vforked == 0) {
		(void)!write(said[1], &byte, 1);
		(void)!read(gate[0], &byte, 1);
		_exit(0);
	}
	(void)!write(said[1], &byte, 1);
	return idle(NULL);
}

/* Its main thread has ended, and the other one takes no signal until the gate is open. */
static void start_in_vfork(void)
{
	pthread_t thread;
	char byte;

	ck_assert(!pipe(gate) && !pipe(said));
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&thread, NULL, wait_for_child, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	ck_assert_int_eq(read(said[0], &byte, 1), 1);
	while (mt_proc_state((uint32_t)child) != 'Z')
		sched_yield();
}

static void set_up(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	caught = at;
	not_ours = 0;
	ck_assert_int_eq(mt_holds_new(is_ours, NULL, &holds), 0);
	child = start(1);
}

static void tear_down(void)
{
	mt_holds_free(holds);
	holds = NULL;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap((void *)caught, 4096);
}

/* The next change of the child's state is that. */
static void await(int options, int code)
{
	siginfo_t info;

	ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, options), 0);
	ck_assert_int_eq(info.si_code, code);
}

static void await_stop(void)
{
	await(WSTOPPED, CLD_STOPPED);
}

static void await_continue(void)
{
	await(WCONTINUED, CLD_CONTINUED);
}

static bool is_stopped(void)
{
	return mt_proc_state((uint32_t)child) == 'T';
}

static void hold(void)
{
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
	await_stop();
	mt_holds_seal(holds);
}

static bool drop(void)
{
	return mt_holds_drop(holds, NULL, NULL);
}

static uint64_t told_ns;

static void tell(void *ctx, uint32_t tgid, uint64_t paused_ns)
{
	ck_assert_uint_eq(tgid, (uint32_t)child);
	told_ns = paused_ns;
}

START_TEST(stops_and_continues)
{
	for (int i = 0; i < 20; i++) {
		hold();
		told_ns = 0;
		ck_assert(!mt_holds_drop(holds, tell, NULL));
		ck_assert_uint_gt(told_ns, 0);
		await_continue();
	}
}
END_TEST

/* Released before it has taken the stop, or right after: it never stays. */
START_TEST(released_at_once)
{
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
		if (i % 2)
			mt_holds_seal(holds);
		ck_assert(!drop());
		ck_assert(!is_stopped());
	}
}
END_TEST

/* Whoever is held already stays so, and is released once. */
START_TEST(held_again)
{
	hold();
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
	mt_holds_seal(holds);
	ck_assert(is_stopped());
	told_ns = 0;
	ck_assert(!mt_holds_drop(holds, tell, NULL));
	ck_assert_uint_gt(told_ns, 0);
	await_continue();
	told_ns = 0;
	ck_assert(!mt_holds_drop(holds, tell, NULL));
	ck_assert_uint_eq(told_ns, 0);
	ck_assert(!is_stopped());
}
END_TEST

START_TEST(stopped_before)
{
	kill(child, SIGSTOP);
	await_stop();
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
	mt_holds_seal(holds);
	ck_assert(mt_holds_drop(holds, tell, NULL));
	ck_assert_uint_eq(told_ns, 0);
	ck_assert(is_stopped());
	kill(child, SIGCONT);
	await_continue();
}
END_TEST

START_TEST(stopped_meanwhile)
{
	hold();
	kill(child, SIGSTOP);
	ck_assert(drop());
	ck_assert(is_stopped());
	kill(child, SIGCONT);
	await_continue();
	hold();
	ck_assert(!drop());
	await_continue();
}
END_TEST

START_TEST(continued_meanwhile)
{
	hold();
	kill(child, SIGCONT);
	await_continue();
	ck_assert(!drop());
	ck_assert(!is_stopped());
}
END_TEST

/* Where a seal is to be had: Linux 6.9. */
START_TEST(continued_and_stopped_meanwhile)
{
	hold();
	kill(child, SIGCONT);
	await_continue();
	kill(child, SIGSTOP);
	await_stop();
	ck_assert(drop());
	ck_assert(is_stopped());
}
END_TEST

/* What a terminal sends would be thrown away by our SIGCONT. */
START_TEST(terminal_stop_comes_through)
{
	hold();
	kill(child, SIGTSTP);
	ck_assert(!drop());
	await_continue();
	while (!*caught)
		;
	ck_assert(!is_stopped());
}
END_TEST

START_TEST(threads)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = start(8);
	for (int i = 0; i < 20; i++) {
		hold();
		ck_assert(!drop());
		await_continue();
	}
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
		ck_assert(!drop());
		ck_assert(!is_stopped());
	}
}
END_TEST

/* What is released before anybody could take the stop is not stopped afterwards. */
START_TEST(released_in_vfork)
{
	struct pollfd goes_on = { .events = POLLIN };

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	start_in_vfork();
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), 0);
	mt_holds_seal(holds);
	ck_assert(!drop());
	ck_assert_int_eq(write(gate[1], "", 1), 1);
	goes_on.fd = said[0];
	ck_assert_int_eq(poll(&goes_on, 1, SECONDS_MAX * 1000), 1);
}
END_TEST

START_TEST(gone_and_foreign)
{
	not_ours = (uint32_t)child;
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), -ESRCH);
	ck_assert(!is_stopped());
	not_ours = 0;
	hold();
	kill(child, SIGKILL);
	await(WEXITED, CLD_KILLED);
	ck_assert(!drop());
	ck_assert_int_eq(mt_holds_take(holds, (uint32_t)child), -ESRCH);
	ck_assert_int_eq(mt_holds_take(holds, 0), -ESRCH);
	child = start(1);
}
END_TEST

static struct mt_holds_page *map_page(void)
{
	void *at = mmap(NULL, sizeof(struct mt_holds_page), PROT_READ | PROT_WRITE, MAP_SHARED,
			mt_holds_page_fd(holds), 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

/* Whoever has the page can do what the holder died before; with what others want kept to. */
START_TEST(undone_for_a_dead_holder)
{
	struct mt_holds_page *page = map_page();
	int status;
	pid_t holder = fork();

	ck_assert_int_ge(holder, 0);
	if (holder == 0) {
		mt_holds_take(holds, (uint32_t)child);
		if (_i)
			mt_holds_seal(holds);
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(holder, &status, 0), holder);
	await_stop();
	ck_assert_uint_eq(page->turn % 2, 1);
	if (_i == 2)
		kill(child, SIGSTOP);
	mt_holds_undo(page);
	ck_assert_uint_eq(page->turn % 2, 0);
	if (_i == 2)
		ck_assert(is_stopped());
	else
		await_continue();
	mt_holds_undo(page);
	munmap(page, sizeof(*page));
}
END_TEST

/* The turn is odd while somebody is held by us, and else even. */
START_TEST(turn)
{
	struct mt_holds_page *page = map_page();
	uint32_t before = page->turn;

	ck_assert_uint_eq(before % 2, 0);
	hold();
	ck_assert_uint_eq(page->turn, before + 1);
	drop();
	ck_assert_uint_eq(page->turn, before + 2);
	munmap(page, sizeof(*page));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("holds");
	TCase *tests = tcase_create("holds");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, stops_and_continues);
	tcase_add_test(tests, released_at_once);
	tcase_add_test(tests, held_again);
	tcase_add_test(tests, stopped_before);
	tcase_add_test(tests, stopped_meanwhile);
	tcase_add_test(tests, continued_meanwhile);
	tcase_add_test(tests, continued_and_stopped_meanwhile);
	tcase_add_test(tests, terminal_stop_comes_through);
	tcase_add_test(tests, threads);
	tcase_add_test(tests, released_in_vfork);
	tcase_add_test(tests, gone_and_foreign);
	tcase_add_loop_test(tests, undone_for_a_dead_holder, 0, 3);
	tcase_add_test(tests, turn);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
