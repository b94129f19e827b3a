/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_place.c - the files of a run: the artifact's name and who may write it, the directory
 * and when nobody needs it any more
 */
#include "collector/place.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char what[4200];
static bool created;

static void setup(void)
{
	strcpy(directory, "/tmp/memtrack-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
}

static void teardown(void)
{
	char command[128];

	ck_assert_int_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ck_assert_int_eq(system(command), 0);
}

static int open_output(const char *path, const char *command)
{
	return mt_place_open_output(path, command, 42, what, sizeof(what), &created);
}

static void opens(const char *path, const char *command, const char *name)
{
	int fd = open_output(path, command);

	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(what, name);
	close(fd);
}

START_TEST(names)
{
	char command[256], name[256];

	opens(NULL, "a", "memtrack.a.42.mtk");
	ck_assert(created);
	opens(NULL, "a", "memtrack.a.42.mtk");
	ck_assert(!created);
	opens(NULL, "/usr/bin/b c\nd", "memtrack.b c\nd.42.mtk");
	opens(NULL, "./", "memtrack..42.mtk");
	opens(NULL, "", "memtrack..42.mtk");
	opens("x.mtk", "a", "x.mtk");
	opens(".", "a", "./memtrack.a.42.mtk");
	memset(command, 'n', sizeof(command) - 1);
	command[sizeof(command) - 1] = '\0';
	snprintf(name, sizeof(name), "memtrack.%.200s.42.mtk", command);
	opens(NULL, command, name);
}
END_TEST

START_TEST(refused)
{
	char path[8192];

	ck_assert_int_eq(open_output("", "a"), -ENOENT);
	ck_assert_int_eq(open_output("no/x", "a"), -ENOENT);
	ck_assert_int_eq(open_output("/dev/null", "a"), -EINVAL);
	ck_assert_int_eq(mkfifo("fifo", 0666), 0);
	ck_assert_int_eq(open_output("fifo", "a"), -EINVAL);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(open_output(path, "a"), -ENAMETOOLONG);
}
END_TEST

/* What is there is not touched before the run begins; one run at a time. */
START_TEST(one_run)
{
	struct stat st;
	int fd = open("x", O_WRONLY | O_CREAT, 0666), again;

	ck_assert_int_eq(write(fd, "old", 3), 3);
	close(fd);
	fd = open_output("x", "a");
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq((int)st.st_size, 3);
	ck_assert_int_eq(open_output("x", "a"), -EBUSY);
	again = dup(fd);
	close(fd);
	ck_assert_int_eq(open_output("x", "a"), -EBUSY);
	close(again);
	fd = open_output("x", "a");
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

/* A process that has the file mapped, until it is killed. */
static pid_t map_shim(const char *shim)
{
	int ready[2], fd;
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		fd = open(shim, O_RDONLY);
		if (mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

START_TEST(outlives)
{
	struct mt_place place;
	char left[64], shim[128];
	pid_t child, waiter;
	struct stat st;
	int status;

	ck_assert_int_eq(mt_place_open("/bin/true", &place), 0);
	strcpy(left, place.directory);
	strcpy(shim, place.shim);
	ck_assert_int_eq(stat(shim, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	ck_assert(!mt_place_in_use(left));
	child = map_shim(shim);
	if (!mt_place_in_use(left)) {
		/* A file system that does not tell. */
		kill(child, SIGKILL);
		mt_place_close(&place);
		return;
	}
	mt_place_leave(&place);
	mt_place_close(&place); /* is not ours any more */
	ck_assert_int_eq(access(shim, F_OK), 0);
	waiter = fork();
	if (waiter == 0) {
		mt_place_outlive(left);
		_exit(0);
	}
	poll(NULL, 0, 100);
	ck_assert_int_eq(waitpid(waiter, &status, WNOHANG), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	ck_assert_int_eq(waitpid(waiter, &status, 0), waiter);
	ck_assert_int_lt(access(left, F_OK), 0);
}
END_TEST

START_TEST(no_shim)
{
	struct mt_place place;

	ck_assert_int_eq(mt_place_open("/nowhere/shim", &place), -ENOENT);
	ck_assert_str_eq(place.what, "/nowhere/shim");
	ck_assert_str_eq(place.directory, "");
	mt_place_close(&place);
	ck_assert(!mt_place_in_use("/nowhere"));
	mt_place_outlive("/nowhere");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tcase = tcase_create("place");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, one_run);
	tcase_add_test(tcase, outlives);
	tcase_add_test(tcase, no_shim);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
