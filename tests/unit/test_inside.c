/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_inside.c - who is in another PID namespace is found by what it calls itself
 *
 * Without the right to make a namespace, as root has it, there is nobody to be found.
 */
#include "collector/inside.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/proc_state.h"

/* The first process of a namespace calls itself and its thread so. */
#define FIRST 1
#define SECOND 2
#define NOBODY 99

static pid_t parent;
/* What the first process is called here: the parent says it, 0: there is none. */
static pid_t first;

static void *idle(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

static void be_first(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, idle, NULL))
		_exit(1);
	idle(NULL);
}

static void be_parent(int said)
{
	pid_t child = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID) == 0) {
		child = fork();
		if (child == 0)
			be_first();
	}
	if (write(said, &child, sizeof(child)) != sizeof(child))
		_exit(1);
	idle(NULL);
}

static void set_up(void)
{
	int said[2];

	ck_assert_int_eq(pipe(said), 0);
	parent = fork();
	ck_assert_int_ge(parent, 0);
	if (parent == 0)
		be_parent(said[1]);
	ck_assert_int_eq(read(said[0], &first, sizeof(first)), sizeof(first));
	close(said[0]);
	close(said[1]);
}

static void tear_down(void)
{
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
}

START_TEST(child)
{
	if (!first)
		return;
	ck_assert_uint_eq(mt_inside_child((uint32_t)parent, FIRST), (uint32_t)first);
	ck_assert_uint_eq(mt_inside_child((uint32_t)parent, NOBODY), 0);
	ck_assert_uint_eq(mt_inside_child((uint32_t)first, FIRST), 0);
	ck_assert_uint_eq(mt_inside_child(0, FIRST), 0);
}
END_TEST

START_TEST(thread)
{
	uint32_t tid;

	if (!first)
		return;
	ck_assert_uint_eq(mt_inside_thread((uint32_t)first, FIRST), (uint32_t)first);
	while (!(tid = mt_inside_thread((uint32_t)first, SECOND)))
		sched_yield();
	ck_assert_uint_ne(tid, (uint32_t)first);
	ck_assert_uint_eq(mt_proc_inner_tgid(tid), SECOND);
	ck_assert_uint_eq(mt_inside_thread((uint32_t)first, NOBODY), 0);
	ck_assert_uint_eq(mt_inside_thread(0, FIRST), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inside");
	TCase *tests = tcase_create("inside");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, child);
	tcase_add_test(tests, thread);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
