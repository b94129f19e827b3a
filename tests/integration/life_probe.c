/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * life_probe.c - what processes execute and how they end, as the BPF programs tell it, of the
 * run's first and whoever it forks; and the sizes that their maps can not have
 *
 * Exits with 77 where BPF is not allowed.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/probes.h"
#include "tests/bpf_allowed.h"
#include "wire/life.h"

#define LIVES_MAX 120

static struct mt_probes *probes;
static struct mt_control *control;

static void open_run(uint32_t life_bytes)
{
	const struct mt_probes_config config = {
		.cookie = 1,
		.budget_bytes = 8192,
		.life_bytes = life_bytes,
	};

	ck_assert_int_eq(mt_probes_open(&config, &probes), 0);
	ck_assert_int_eq(mt_probes_attach(probes, "/proc/self/exe"), 0);
	control = mt_probes_control(probes);
}

static void close_run(void)
{
	mt_probes_close(probes);
}

static int on_no_stack(void *ctx, const void *bytes, size_t len)
{
	return 0;
}

/* What came on the ring "life". */
static union {
	struct mt_life_head head;
	struct mt_life_exec exec;
	struct mt_life_exit exit;
} lives[LIVES_MAX];
static unsigned n_lives;

static int on_life(void *ctx, const void *bytes, size_t len)
{
	ck_assert_uint_lt(n_lives, LIVES_MAX);
	ck_assert_uint_le(len, sizeof(*lives));
	memcpy(&lives[n_lives], bytes, len);
	ck_assert_uint_eq(lives[n_lives].head.len, len);
	n_lives++;
	return 0;
}

static void *named_thread(void *unused)
{
	prctl(PR_SET_NAME, "life thread");
	return NULL;
}

/* A child that has a thread, then runs true(1). */
static pid_t run_child(void)
{
	pid_t child = fork();
	pthread_t thread;

	ck_assert_int_ge(child, 0);
	if (!child) {
		if (!pthread_create(&thread, NULL, named_thread, NULL))
			pthread_join(thread, NULL);
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	return child;
}

START_TEST(lives_of_members)
{
	pid_t child, grandchild;
	int status, told[2];

	open_run(0);
	child = run_child();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(mt_probes_drain(probes, on_no_stack, on_life, NULL), 0);
	ck_assert_uint_eq(n_lives, 0);

	ck_assert_int_eq(mt_probes_add_member(probes, getpid()), 0);
	child = run_child();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(mt_probes_drain(probes, on_no_stack, on_life, NULL), 0);
	ck_assert_uint_eq(n_lives, 3);
	for (unsigned i = 0; i < n_lives; i++) {
		ck_assert_uint_eq(lives[i].head.tgid, (uint32_t)child);
		ck_assert_uint_gt(lives[i].head.time_ns, i ? lives[i - 1].head.time_ns : 0);
	}
	ck_assert_uint_eq(lives[0].head.type, MT_LIFE_EXIT);
	ck_assert_uint_ne(lives[0].head.tid, (uint32_t)child);
	ck_assert_uint_eq(lives[0].exit.group_dead, 0);
	ck_assert_str_eq((char *)lives[0].exit.comm, "life thread");

	ck_assert_uint_eq(lives[1].head.type, MT_LIFE_EXEC);
	ck_assert_str_eq((char *)lives[1].exec.comm, "true");
	ck_assert_str_eq((char *)lives[1].exec.filename, "/bin/true");

	ck_assert_uint_eq(lives[2].head.type, MT_LIFE_EXIT);
	ck_assert_uint_eq(lives[2].exit.group_dead, 1);
	ck_assert_uint_eq(lives[2].exit.exit_code, 0);

	/* A child of a child, killed; then the run is told how. */
	n_lives = 0;
	ck_assert_int_eq(pipe(told), 0);
	child = fork();
	if (!child) {
		grandchild = fork();
		if (!grandchild)
			raise(SIGKILL);
		if (write(told[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(4);
		waitpid(grandchild, &status, 0);
		_exit(3);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(mt_probes_drain(probes, on_no_stack, on_life, NULL), 0);
	ck_assert_int_eq(read(told[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	ck_assert_uint_eq(n_lives, 2);
	ck_assert_uint_eq(lives[0].head.type, MT_LIFE_EXIT);
	ck_assert_uint_eq(lives[0].head.tgid, (uint32_t)grandchild);
	ck_assert_uint_eq(lives[0].exit.exit_code, SIGKILL);
	ck_assert_uint_eq(lives[1].head.type, MT_LIFE_EXIT);
	ck_assert_uint_eq(lives[1].head.tgid, (uint32_t)child);
	ck_assert_uint_eq(lives[1].exit.exit_code, 3 << 8);
	ck_assert_uint_eq(control->lost_lives, 0);
	ck_assert_uint_eq(control->lost_members, 0);
	close_run();
}
END_TEST

START_TEST(life_ring_overflows_loudly)
{
	open_run(4096);
	ck_assert_int_eq(mt_probes_add_member(probes, getpid()), 0);
	for (int i = 0; i < 120; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
	}
	ck_assert_int_eq(mt_probes_drain(probes, on_no_stack, on_life, NULL), 0);
	ck_assert_uint_gt(n_lives, 60);
	ck_assert_uint_gt(control->lost_lives, 0);
	ck_assert_uint_eq(n_lives + control->lost_lives, 120);
	close_run();
}
END_TEST

START_TEST(sizes_that_are_none)
{
	struct mt_probes_config config = { .cookie = 1, .budget_bytes = 12288 };
	struct mt_probes *none = NULL;

	ck_assert_int_eq(mt_probes_open(&config, &none), -EINVAL);
	config.budget_bytes = 131072;
	ck_assert_int_eq(mt_probes_open(&config, &none), -EINVAL);
	config.budget_bytes = 8192;
	config.stacks_bytes = 12288;
	ck_assert_int_eq(mt_probes_open(&config, &none), -EINVAL);
	config.stacks_bytes = 0;
	config.life_bytes = 12288;
	ck_assert_int_eq(mt_probes_open(&config, &none), -EINVAL);
	ck_assert_ptr_null(none);
	mt_probes_close(none);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("life_probe");
	TCase *cases = tcase_create("life_probe");
	SRunner *runner;
	int failed, skip = bpf_allowed();

	if (skip)
		return skip;
	runner = srunner_create(suite);
	suite_add_tcase(suite, cases);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, lives_of_members);
	tcase_add_test(cases, life_ring_overflows_loudly);
	tcase_add_test(cases, sizes_that_are_none);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
