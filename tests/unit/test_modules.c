/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_modules.c - a module's file is what has the very build-id that the process has; or the
 *                  number that it had there
 */
#include "collector/modules.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cfi_bytes.h"
#include "tests/sample_artifact.h"
#include "wire/ring.h"

#define BIAS 0x100000

static struct mt_writer *writer;
static struct mt_encode *encode;
static struct mt_modules *modules;
static struct mt_space space, listing;
static int fd, output;
static uint64_t dev, ino; /* of the module's file, as the process has seen it; 0: it has not */

/* A file, which has a build-id of 20 bytes. */
static void setup(void)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "test" };
	static const struct elf_parts parts = { .with_sections = true, .symbols = SHT_SYMTAB };
	static struct cfi_bytes file;

	output = artifact_fd("", 0);
	ck_assert_int_eq(mt_writer_new(dup(output), &header, &writer), 0);
	ck_assert_int_eq(mt_encode_start(writer, NULL, &encode), 0);
	ck_assert_int_eq(mt_modules_new(encode, &modules), 0);
	mt_space_init(&space);
	mt_space_init(&listing);
	elf_put(&file, &parts);
	fd = memfd_create("module", MFD_CLOEXEC);
	ck_assert_int_eq(write(fd, file.bytes, file.len), (ssize_t)file.len);
}

static void teardown(void)
{
	close(fd);
	mt_space_done(&listing);
	mt_space_done(&space);
	mt_modules_free(modules);
	ck_assert_int_eq(mt_encode_stop(encode), 0);
	mt_writer_free(writer);
	close(output);
}

/* Whether the file counts as that of a module with such a build-id. */
static bool is_found(const char *build_id, uint32_t bytes)
{
	struct {
		struct mt_module_record head;
		char path[32];
	} record = { .head = { .len = sizeof(record),
			       .bias = BIAS,
			       .start = BIAS + ELF_TEXT,
			       .end = BIAS + ELF_TEXT_END,
			       .dev = dev,
			       .ino = ino,
			       .build_id_bytes = bytes } };
	uint64_t missing = mt_modules_missing(modules);
	bool found;

	memcpy(record.head.build_id, build_id, bytes);
	snprintf(record.path, sizeof(record.path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(mt_modules_apply(modules, &space, &listing, 0, &record, sizeof(record)),
			 0);
	found = mt_space_find(&space, BIAS + ELF_TEXT)->image;
	ck_assert_uint_eq(mt_modules_missing(modules), missing + !found);
	return found;
}

START_TEST(build_ids_are_equal)
{
	char other[] = ELF_BUILD_ID;

	ck_assert(is_found(ELF_BUILD_ID, 20));
	other[19]++;
	ck_assert(!is_found(other, 20));
	other[19]--;
	other[0]++;
	ck_assert(!is_found(other, 20));
}
END_TEST

/* One of another length is another, though it begins like it. */
START_TEST(build_ids_are_as_long)
{
	for (uint32_t bytes = 1; bytes < 20; bytes++)
		ck_assert(!is_found(ELF_BUILD_ID, bytes));
}
END_TEST

/* What the process does not have in memory can not be compared. */
START_TEST(no_build_id)
{
	ck_assert(is_found("", 0));
}
END_TEST

/* Then it has to be the file that the process has loaded, not what was put in its place. */
START_TEST(another_file)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	dev = st.st_dev;
	ino = st.st_ino;
	ck_assert(is_found("", 0));
	ino++;
	ck_assert(!is_found("", 0));
	ck_assert(is_found(ELF_BUILD_ID, 20));
	ino--;
	dev++;
	ck_assert(!is_found("", 0));
	ck_assert(is_found(ELF_BUILD_ID, 20));
}
END_TEST

/* What of symbols was put until now; nothing more is put then. */
static char *symbols_put(void)
{
	struct mt_reader_result result;
	struct artifact_bytes file;
	char *text, *at;

	ck_assert_int_eq(mt_encode_stop(encode), 0);
	encode = NULL;
	ck_assert_int_eq(mt_writer_finish(writer, &(struct mt_footer){ 0 }), 0);
	file = artifact_of_fd(output);
	ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
	free(file.bytes);
	at = strstr(text, "\nsymbols ");
	if (!at) {
		free(text);
		return NULL;
	}
	memmove(text, at + 1, strlen(at));
	text[strcspn(text, "\n")] = '\0';
	ck_assert_ptr_null(strstr(text + strlen(text) + 1, "\nsymbols "));
	return text;
}

/* Nobody finds it later.  Once, however often it is mapped. */
START_TEST(a_file_in_memory)
{
	char *text;

	ck_assert(is_found(ELF_BUILD_ID, 20));
	ck_assert(is_found(ELF_BUILD_ID, 20));
	text = symbols_put();
	ck_assert_str_eq(text, "symbols module=0 left_out=0 symbol=0x1000,0x80,18," ELF_FUNCTION);
	free(text);
}
END_TEST

/* A file that stays has its own names; one that has no name any more, has not. */
START_TEST(a_file_with_a_name)
{
	char name[] = "modules-XXXXXX", *text;
	char bytes[8192];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);

	close(fd);
	fd = mkstemp(name);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, (size_t)len), len);
	if (_i == 1)
		ck_assert_int_eq(unlink(name), 0);
	ck_assert(is_found(ELF_BUILD_ID, 20));
	if (_i == 0)
		ck_assert_int_eq(unlink(name), 0);
	text = symbols_put();
	ck_assert_int_eq(text != NULL, _i == 1);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("modules");
	TCase *tcase = tcase_create("modules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, build_ids_are_equal);
	tcase_add_test(tcase, build_ids_are_as_long);
	tcase_add_test(tcase, no_build_id);
	tcase_add_test(tcase, another_file);
	tcase_add_test(tcase, a_file_in_memory);
	tcase_add_loop_test(tcase, a_file_with_a_name, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
