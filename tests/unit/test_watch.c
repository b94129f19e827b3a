/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_watch.c - programs without the shim: each is told of once, and no other is
 */
#include "collector/watch.h"

#include <check.h>
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/proc_state.h"

/* Above the numbers that processes can have. */
#define TGID (1u << 23)
#define LATER (2 * MT_WATCH_PATIENCE_NS)

static struct mt_watch *watch;
static uint32_t n_told, told_tgid;
static char told[64], told_reason[64];

static int tell(void *ctx, uint32_t tgid, const char *what, const char *reason)
{
	n_told++;
	told_tgid = tgid;
	snprintf(told, sizeof(told), "%s", what);
	snprintf(told_reason, sizeof(told_reason), "%s", reason);
	return 0;
}

static void setup(void)
{
	ck_assert_int_eq(mt_watch_new("no-such-shim.so", tell, NULL, &watch), 0);
	n_told = 0;
}

static void teardown(void)
{
	mt_watch_free(watch);
}

static void exec(uint32_t tgid, const char *name)
{
	ck_assert_int_eq(mt_watch_exec(watch, tgid, "", name, 1), 0);
}

START_TEST(registers)
{
	exec(TGID, "a");
	mt_watch_arrived(watch, TGID);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_int_eq(mt_watch_exit(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 0);
}
END_TEST

START_TEST(does_not_register)
{
	exec(TGID, "a");
	ck_assert_int_eq(mt_watch_tick(watch, MT_WATCH_PATIENCE_NS), 0);
	ck_assert_uint_eq(n_told, 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_int_eq(mt_watch_tick(watch, 2 * LATER), 0);
	ck_assert_int_eq(mt_watch_exit(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_uint_eq(told_tgid, TGID);
	ck_assert_str_eq(told, "a");
	/* No process of that number is there to be looked at. */
	ck_assert_str_eq(told_reason, "ended before it could be looked at");
}
END_TEST

START_TEST(ends_or_executes_before)
{
	exec(TGID, "a");
	ck_assert_int_eq(mt_watch_exit(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 1);
	exec(TGID, "b");
	exec(TGID, "c");
	ck_assert_uint_eq(n_told, 2);
	ck_assert_str_eq(told, "b");
	mt_watch_arrived(watch, TGID);
	ck_assert_int_eq(mt_watch_exit(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 2);
}
END_TEST

START_TEST(overflow)
{
	for (uint32_t i = 0; i < MT_WATCH_PENDING + 100; i++)
		if (mt_watch_exec(watch, TGID + i, "/bin/true", "x", 1) < 0)
			ck_abort_msg("process %u", i);
	ck_assert_uint_eq(n_told, 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_uint_eq(n_told, MT_WATCH_PENDING);
	for (uint32_t i = 0; i < MT_WATCH_PENDING + 100; i++)
		if (mt_watch_exit(watch, TGID + i) < 0)
			ck_abort_msg("process %u", i);
	ck_assert_uint_eq(n_told, MT_WATCH_PENDING);
}
END_TEST

static bool none(void *ctx, uint32_t tgid)
{
	return false;
}

static bool ours(void *ctx, uint32_t tgid)
{
	return tgid == (uint32_t)getpid();
}

/* A child that waits, as a copy of us. */
static pid_t start(void)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	ck_assert_int_gt(child, 0);
	return child;
}

/* Without the kernel part: one that is there is told of once, also if it ends early. */
START_TEST(scan)
{
	pid_t child = start();
	int status;

	ck_assert_int_eq(mt_watch_scan(watch, (uint32_t)child, 1, none, NULL), 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_uint_eq(told_tgid, (uint32_t)child);
	ck_assert_int_eq(mt_watch_scan(watch, (uint32_t)child, LATER, none, NULL), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 1);

	child = start();
	ck_assert_int_eq(mt_watch_scan(watch, (uint32_t)child, LATER, none, NULL), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 2);
}
END_TEST

static void *start_grandchild(void *pipe)
{
	pid_t grandchild = start();

	if (write(*(int *)pipe, &grandchild, sizeof(grandchild)) != sizeof(grandchild))
		_exit(1);
	for (;;)
		pause();
}

/* It is no child of the main thread, but of the one that goes on. */
START_TEST(child_of_a_thread)
{
	pid_t grandchild, child;
	pthread_t thread;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		pthread_create(&thread, NULL, start_grandchild, &ends[1]);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ends[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	ck_assert_int_eq(mt_watch_scan(watch, (uint32_t)getpid(), 1, ours, NULL), 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_uint_eq(n_told, 2);
	kill(child, SIGKILL);
	kill(grandchild, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

/* A process that has ended and is not waited for has no program. */
START_TEST(zombie)
{
	siginfo_t info;
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(mt_watch_scan(watch, (uint32_t)getpid(), 1, ours, NULL), 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	waitpid(child, &status, 0);
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 0);
}
END_TEST

/* The n-th number behind the name in our stat, as proc(5) counts them. */
static uint64_t stat_field(int n)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char stat[2048], *at;

	if (!file)
		_exit(1);
	stat[fread(stat, 1, sizeof(stat) - 1, file)] = '\0';
	fclose(file);
	at = strrchr(stat, ')') + 3;
	for (int i = 3; i < n; i++)
		at = strchr(at, ' ') + 1;
	return strtoull(at, NULL, 10);
}

/* In the child: the environment is said to be what lies here, which anybody may say. */
static void move_environment(char *at, size_t len, int ready)
{
	const struct prctl_mm_map map = {
		.start_code = stat_field(26),
		.end_code = stat_field(27),
		.start_stack = stat_field(28),
		.start_data = stat_field(45),
		.end_data = stat_field(46),
		.start_brk = stat_field(47),
		.brk = (uintptr_t)sbrk(0),
		.arg_start = stat_field(48),
		.arg_end = stat_field(49),
		.env_start = (uintptr_t)at,
		.env_end = (uintptr_t)at + len,
		.exe_fd = UINT32_MAX,
	};
	char moved = prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) == 0;

	if (write(ready, &moved, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* One of any length is looked at up to a limit, and found at any place before that. */
START_TEST(endless_environment)
{
	static const char variables[] = "MEMTRACK_RUN=x\0LD_PRELOAD=/no-such-shim.so";
	/* Across the ends of blocks; behind the limit. */
	const size_t places[] = { 0, 65536 - 5, 16384 - 5, MT_PROC_FILE_BYTES + 65536 };
	const size_t len = 2 * MT_PROC_FILE_BYTES;
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t place = places[_i];
	int ready[2], status;
	pid_t child;
	char moved;

	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(pipe(ready), 0);
	memset(at + place, 'x', 4096);
	memcpy(at + place, variables, sizeof(variables));
	child = fork();
	if (child == 0)
		move_environment(at, len, ready[1]);
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(read(ready[0], &moved, 1), 1);
	ck_assert_int_eq(mt_watch_exec(watch, (uint32_t)child, "", "a", 1), 0);
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	munmap(at, len);
	close(ready[0]);
	close(ready[1]);
	/* A kernel that does not let it be moved shows our own. */
	if (moved)
		ck_assert_str_eq(told_reason, place < MT_PROC_FILE_BYTES
						      ? "did not register"
						      : "started without our environment");
}
END_TEST

/* A command that ends before anybody looked. */
START_TEST(root)
{
	mt_watch_root(watch, TGID, "command", 1);
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_str_eq(told, "command");
	mt_watch_root(watch, TGID, "command", 1);
	mt_watch_arrived(watch, TGID);
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 1);
}
END_TEST

static void root_is_told_as_32_bit(const char *name)
{
	mt_watch_root(watch, TGID, name, 1);
	n_told = 0;
	ck_assert_int_eq(mt_watch_finish(watch), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_str_eq(told_reason, "a 32-bit program");
}

/* What executed another program before anybody looked is told of; what could have
 * registered itself is not. */
START_TEST(executed_before_arrival)
{
	static const unsigned char header[64] = { 0x7f, 'E', 'L', 'F', 1 };
	char path[] = "/tmp/memtrack-test-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_eq(write(fd, header, sizeof(header)), sizeof(header));
	close(fd);
	ck_assert_int_eq(mt_watch_exec(watch, TGID, path, "small", 1), 0);
	ck_assert_int_eq(mt_watch_arrived(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_str_eq(told, "small");
	ck_assert_str_eq(told_reason, "a 32-bit program");
	ck_assert_int_eq(mt_watch_passed(watch, TGID, path, "again"), 0);
	ck_assert_uint_eq(n_told, 2);
	ck_assert_str_eq(told, "again");
	ck_assert_int_eq(mt_watch_passed(watch, TGID, "/bin/sh", "sh"), 0);
	ck_assert_int_eq(mt_watch_passed(watch, TGID, "", "?"), 0);
	ck_assert_uint_eq(n_told, 2);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* The loader has no interpreter, and need not be what is tracked. */
START_TEST(loader)
{
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			      .e_type = ET_DYN,
			      .e_phentsize = sizeof(Elf64_Phdr) };
	char path[] = "/tmp/memtrack-test-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_eq(write(fd, &header, sizeof(header)), sizeof(header));
	ck_assert_int_eq(mt_watch_exec(watch, TGID, path, "loader", 1), 0);
	ck_assert_int_eq(mt_watch_arrived(watch, TGID), 0);
	ck_assert_int_eq(mt_watch_passed(watch, TGID, path, "loader"), 0);
	ck_assert_uint_eq(n_told, 0);
	ck_assert_int_eq(mt_watch_exec(watch, TGID, path, "loader", 1), 0);
	ck_assert_int_eq(mt_watch_exit(watch, TGID), 0);
	ck_assert_uint_eq(n_told, 1);
	ck_assert_str_eq(told_reason, "statically linked");
	header.e_type = ET_EXEC;
	ck_assert_int_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	ck_assert_int_eq(mt_watch_passed(watch, TGID, path, "static"), 0);
	ck_assert_uint_eq(n_told, 2);
	close(fd);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Who is stopped is not expected to register. */
START_TEST(stopped)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	exec((uint32_t)child, "stopped");
	ck_assert_int_eq(mt_watch_tick(watch, LATER), 0);
	ck_assert_uint_eq(n_told, 0);
	ck_assert_int_eq(kill(child, SIGCONT), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(mt_watch_tick(watch, LATER + MT_WATCH_PATIENCE_NS), 0);
	ck_assert_uint_eq(n_told, 0);
	ck_assert_int_eq(mt_watch_tick(watch, 2 * LATER), 0);
	ck_assert_uint_eq(n_told, 1);
}
END_TEST

/* The command's file says why, found as it will be for the execution. */
START_TEST(root_by_its_file)
{
	static const unsigned char header[64] = { 0x7f, 'E', 'L', 'F', 1 };
	char folder[] = "/tmp/memtrack-test-XXXXXX", path[64], search[128];
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/command", folder);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(header, sizeof(header), 1, file), 1);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	root_is_told_as_32_bit(path);
	snprintf(search, sizeof(search), "/nowhere:%s:/bin", folder);
	ck_assert_int_eq(setenv("PATH", search, 1), 0);
	root_is_told_as_32_bit("command");
	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_int_eq(setenv("PATH", "/nowhere::/bin", 1), 0);
	root_is_told_as_32_bit("command");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watch");
	TCase *tcase = tcase_create("watch");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, registers);
	tcase_add_test(tcase, does_not_register);
	tcase_add_test(tcase, ends_or_executes_before);
	tcase_add_test(tcase, overflow);
	tcase_add_test(tcase, scan);
	tcase_add_test(tcase, child_of_a_thread);
	tcase_add_test(tcase, zombie);
	tcase_add_loop_test(tcase, endless_environment, 0, 4);
	tcase_add_test(tcase, root);
	tcase_add_test(tcase, root_by_its_file);
	tcase_add_test(tcase, executed_before_arrival);
	tcase_add_test(tcase, loader);
	tcase_add_test(tcase, stopped);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
