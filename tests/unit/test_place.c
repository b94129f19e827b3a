/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_place.c - the files of a run: the artifact's name and who may write it, the directory
 * and when nobody needs it any more
 */
#include "collector/place.h"

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char what[4200];
static bool created;
static int attended = -1; /* as the collector does */

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

/* A name that can be foreseen leads nowhere else; one that was given does. */
START_TEST(links)
{
	int fd = open("victim", O_WRONLY | O_CREAT, 0666);

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(symlink("victim", "memtrack.a.42.mtk"), 0);
	ck_assert_int_eq(open_output(NULL, "a"), -ELOOP);
	ck_assert_int_eq(open_output(".", "a"), -ELOOP);
	opens("memtrack.a.42.mtk", "a", "memtrack.a.42.mtk");
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
static pid_t map_file_for(int rights, const char *path)
{
	int ready[2], fd;
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		fd = open(path, O_RDONLY);
		if (mmap(NULL, 1, rights, MAP_PRIVATE, fd, 0) == MAP_FAILED)
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

static pid_t map_file(const char *path)
{
	return map_file_for(PROT_READ, path);
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* With a shim that nobody has mapped. */
static void open_place(struct mt_place *place)
{
	ck_assert_int_eq(mt_place_open(place), 0);
	ck_assert_int_eq(mt_place_fill(place, "/bin/true"), 0);
}

/* Whether the kernel names the platform: then LD_PRELOAD does, too. */
static bool divided(void)
{
	const char *platform = (const char *)getauxval(AT_PLATFORM);

	return platform && !strcmp(platform, "x86_64");
}

/* The directory stays as long as somebody has the file, a name in it, mapped. */
static void outlives_mapping_of(const char *name)
{
	struct mt_place place;
	char left[64], path[256];
	pid_t child, waiter;
	int status;

	open_place(&place);
	strcpy(left, place.directory);
	attended = mt_place_attend(left);
	snprintf(path, sizeof(path), "%s/%s", left, name);
	ck_assert(!mt_place_in_use(attended, left));
	child = map_file(path);
	if (!mt_place_in_use(attended, left)) {
		/* A file system that does not tell. */
		kill(child, SIGKILL);
		mt_place_close(&place);
		return;
	}
	mt_place_leave(&place);
	mt_place_close(&place); /* is not ours any more */
	ck_assert_int_eq(access(path, F_OK), 0);
	waiter = fork();
	if (waiter == 0) {
		mt_place_outlive(attended, left);
		_exit(0);
	}
	poll(NULL, 0, 100);
	ck_assert_int_eq(waitpid(waiter, &status, WNOHANG), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	ck_assert_int_eq(waitpid(waiter, &status, 0), waiter);
	ck_assert_int_lt(access(left, F_OK), 0);
}

/* A process is of the run by the file that it has loaded, and not by what another is called. */
START_TEST(known_by_its_file)
{
	struct mt_place_marks marks, none;
	struct mt_place place;
	char moved[256];
	pid_t child, other;
	int fd;

	ck_assert_int_eq(mt_place_open(&place), 0);
	snprintf(moved, sizeof(moved), "%s/moved", place.directory);
	ck_assert_int_eq(mt_place_mark(place.fd, &none), 0);
	ck_assert_int_eq(mt_place_fill(&place, "/bin/true"), 0);
	ck_assert_int_eq(mt_place_mark(place.fd, &marks), 0);
	ck_assert(!mt_place_is_loaded(&marks, (uint32_t)getpid()));

	child = map_file(place.shim);
	ck_assert(!mt_place_is_loaded(&marks, (uint32_t)child));
	end(child);
	child = map_file_for(PROT_READ | PROT_EXEC, place.shim);
	ck_assert(mt_place_is_loaded(&marks, (uint32_t)child));
	ck_assert(!mt_place_is_loaded(&none, (uint32_t)child));
	/* Whether or not it has its name still. */
	ck_assert_int_eq(rename(place.shim, moved), 0);
	ck_assert(mt_place_is_loaded(&marks, (uint32_t)child));
	ck_assert_int_eq(unlink(moved), 0);
	ck_assert(mt_place_is_loaded(&marks, (uint32_t)child));

	fd = open(place.shim, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	close(fd);
	other = map_file_for(PROT_READ | PROT_EXEC, place.shim);
	ck_assert(!mt_place_is_loaded(&marks, (uint32_t)other));
	end(other);
	end(child);
	ck_assert(!mt_place_is_loaded(&marks, (uint32_t)child));
	mt_place_close(&place);
}
END_TEST

/* The empty library is one of the run's, too. */
START_TEST(known_by_the_empty_library)
{
	struct mt_place_marks marks;
	struct mt_place place;
	char path[256];
	pid_t child;

	if (!divided())
		return;
	open_place(&place);
	ck_assert_int_eq(mt_place_mark(place.fd, &marks), 0);
	snprintf(path, sizeof(path), "%s/i686/" MT_SHIM_NAME, place.directory);
	child = map_file(path);
	ck_assert(!mt_place_is_loaded(&marks, (uint32_t)child));
	end(child);
	child = map_file_for(PROT_READ | PROT_WRITE, path);
	ck_assert(mt_place_is_loaded(&marks, (uint32_t)child));
	end(child);
	mt_place_close(&place);
}
END_TEST

START_TEST(outlives)
{
	outlives_mapping_of(MT_SHIM_NAME);
	if (divided())
		outlives_mapping_of("i686/" MT_SHIM_NAME);
}
END_TEST

/* What the loader makes of the value for LD_PRELOAD where it takes platform for the word. */
static void expand(const char *preload, const char *platform, char *ret, size_t room)
{
	const char *word = strstr(preload, "${PLATFORM}");

	ck_assert_ptr_nonnull(word);
	snprintf(ret, room, "%.*s%s%s", (int)(word - preload), preload, platform,
		 word + strlen("${PLATFORM}"));
}

/* Every 64-bit program finds the copy, every 32-bit one a library that it can load. */
/* So does a program without the shim that has it in its environment, and is waited for. */
START_TEST(heirs)
{
	char variable[128], left[sizeof(((struct mt_place *)0)->directory)];
	char *environment[] = { variable, NULL };
	pid_t heir, waits;
	struct mt_place place;
	int ready[2], status;
	char byte;

	open_place(&place);
	strcpy(left, place.directory);
	attended = mt_place_attend(left);
	ck_assert(!mt_place_in_use(attended, left));
	snprintf(variable, sizeof(variable), "MEMTRACK_RUN=x:%s/socket", left);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	heir = fork();
	if (heir == 0) {
		execle("/bin/sleep", "sleep", "60", NULL, environment);
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* it is executed */
	ck_assert(mt_place_in_use(attended, left));
	mt_place_leave(&place);
	waits = fork();
	if (waits == 0) {
		mt_place_outlive(attended, left);
		_exit(0);
	}
	poll(NULL, 0, 1500); /* longer than an exec is waited for */
	ck_assert_int_eq(access(left, F_OK), 0);
	ck_assert_int_eq(waitpid(waits, NULL, WNOHANG), 0);
	kill(heir, SIGKILL);
	waitpid(heir, NULL, 0);
	ck_assert_int_eq(waitpid(waits, &status, 0), waits);
	ck_assert_int_eq(status, 0);
	ck_assert_int_lt(access(left, F_OK), 0);
}
END_TEST

START_TEST(platforms)
{
	static const char *const names_64[] = { "x86_64", "haswell", "xeon_phi", "" };
	struct mt_place place;
	struct stat shim, found;
	char path[256], left[64];
	Elf32_Ehdr header;
	int fd;

	open_place(&place);
	strcpy(left, place.directory);
	ck_assert_int_eq(stat(place.shim, &shim), 0);
	ck_assert_uint_eq(shim.st_mode & 07777, 0755);
	if (!divided()) {
		ck_assert_str_eq(place.preload, place.shim);
		mt_place_close(&place);
		return;
	}
	for (size_t i = 0; i < sizeof(names_64) / sizeof(names_64[0]); i++) {
		expand(place.preload, names_64[i], path, sizeof(path));
		ck_assert_int_eq(stat(path, &found), 0);
		ck_assert_uint_eq(found.st_ino, shim.st_ino);
	}
	expand(place.preload, "i686", path, sizeof(path));
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(read(fd, &header, sizeof(header)), sizeof(header));
	ck_assert_int_eq(fstat(fd, &found), 0);
	close(fd);
	ck_assert_uint_eq(found.st_mode & 07777, 0755);
	ck_assert_mem_eq(header.e_ident, ELFMAG, SELFMAG);
	ck_assert_uint_eq(header.e_ident[EI_CLASS], ELFCLASS32);
	ck_assert_uint_eq(header.e_machine, EM_386);
	mt_place_close(&place);
	ck_assert_int_lt(access(left, F_OK), 0);
}
END_TEST

START_TEST(no_shim)
{
	struct mt_place place;

	ck_assert_int_eq(mt_place_open(&place), 0);
	ck_assert_int_eq(mt_place_fill(&place, "/nowhere/shim"), -ENOENT);
	ck_assert_str_eq(place.what, "/nowhere/shim");
	ck_assert(!mt_place_is_left(place.fd));
	mt_place_close(&place);
	ck_assert_str_eq(place.directory, "");
	ck_assert_int_eq(mt_place_attend("/nowhere"), -ENOENT);
	ck_assert(!mt_place_in_use(-1, "/nowhere"));
	mt_place_outlive(-1, "/nowhere");
}
END_TEST

/* A mapping that outlives its descriptor keeps it from being left; a file system that does not
 * know of it must not say that it is. */
START_TEST(left)
{
	struct mt_place place;
	struct statfs fs;
	void *mapped;
	bool tells;
	int fd;

	open_place(&place);
	ck_assert_int_eq(statfs(place.directory, &fs), 0);
	fd = open(place.shim, O_RDONLY);
	tells = fs.f_type != OVERLAYFS_SUPER_MAGIC && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
	close(fd);
	ck_assert_int_eq(mt_place_is_left(place.fd), tells);

	fd = open(place.shim, O_RDONLY);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(mapped, MAP_FAILED);
	close(fd);
	ck_assert(!mt_place_is_left(place.fd));
	munmap(mapped, 4096);
	ck_assert_int_eq(mt_place_is_left(place.fd), tells);
	mt_place_close(&place);
}
END_TEST

/* Who comes later has the name, and no claim to what is in it. */
START_TEST(another_directory)
{
	char inner[256], file[256], socket[256];
	struct mt_place place;

	open_place(&place);
	attended = mt_place_attend(place.directory);
	ck_assert_int_ge(attended, 0);
	mt_place_remove(attended, place.directory);
	ck_assert_int_lt(access(place.directory, F_OK), 0);

	snprintf(inner, sizeof(inner), "%s/i686", place.directory);
	snprintf(file, sizeof(file), "%s/" MT_SHIM_NAME, directory);
	snprintf(socket, sizeof(socket), "%s/socket", place.directory);
	ck_assert_int_eq(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
	ck_assert_int_eq(mkdir(place.directory, 0700), 0);
	ck_assert_int_eq(symlink(directory, inner), 0);
	ck_assert_int_eq(symlink(file, socket), 0);
	mt_place_remove(attended, place.directory);
	mt_place_outlive(attended, place.directory);
	ck_assert_int_eq(unlink(inner), 0);
	ck_assert_int_eq(unlink(socket), 0);
	mt_place_close(&place);
	ck_assert_int_eq(access(file, F_OK), 0);
	ck_assert_int_eq(rmdir(dirname(socket)), 0);
}
END_TEST

/* Where there is no room is told, not what was to be put there. */
START_TEST(no_room)
{
	const struct rlimit little = { 4096, 4096 };
	struct mt_place place;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
	ck_assert_int_eq(mt_place_open(&place), 0);
	ck_assert_int_eq(mt_place_fill(&place, "/bin/true"), -EFBIG);
	ck_assert_str_eq(place.what, place.shim);
	mt_place_close(&place);
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
	tcase_add_test(tcase, links);
	tcase_add_test(tcase, one_run);
	tcase_add_test(tcase, known_by_its_file);
	tcase_add_test(tcase, known_by_the_empty_library);
	tcase_add_test(tcase, outlives);
	tcase_add_test(tcase, heirs);
	tcase_add_test(tcase, platforms);
	tcase_add_test(tcase, no_shim);
	tcase_add_test(tcase, left);
	tcase_add_test(tcase, another_directory);
	tcase_add_test(tcase, no_room);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
