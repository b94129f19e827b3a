/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_kept_stacks.c - artifact/reader.c: mappings and kept stacks, and those that are none
 */
#include <check.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "artifact/layout.h"
#include "tests/sample_artifact.h"
#include "wire/control.h"

/* Records of a file, packed by hand: the writer refuses most of these. */
static msgpack_sbuffer buffer;
static msgpack_packer packer;

static void put_kind(const char *kind, size_t elements)
{
	msgpack_pack_array(&packer, elements);
	msgpack_pack_str_with_body(&packer, kind, strlen(kind));
}

static void put_numbers(size_t n, const uint64_t *numbers)
{
	for (size_t i = 0; i < n; i++)
		msgpack_pack_uint64(&packer, numbers[i]);
}

static void put_text(const char *text)
{
	msgpack_pack_bin_with_body(&packer, text, strlen(text));
}

/* With a module, a process and a thread. */
static void begin(void)
{
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	put_kind(MT_SIGNATURE, 2);
	put_numbers(1, (uint64_t[]){ MT_FORMAT_VERSION });
	put_kind(MT_KIND_HEADER, 8);
	put_numbers(4, (uint64_t[]){ 1, 2, 1, 8192 });
	put_text("x86_64");
	put_text("test");
	msgpack_pack_array(&packer, 0);
	put_kind(MT_KIND_MODULE, 5);
	put_numbers(2, (uint64_t[]){ 0, 0 });
	put_text("/a");
	put_text("");
	put_kind(MT_KIND_PROCESS, 8);
	put_numbers(5, (uint64_t[]){ 1, 0, 7, 1, 0 });
	put_text("/a");
	put_text("a");
	put_kind(MT_KIND_THREAD, 6);
	put_numbers(4, (uint64_t[]){ 1, 1, 7, 0 });
	put_text("a");
}

/* Reads what was put, with a footer behind it. */
static void end(struct mt_reader_result *ret, char **ret_text)
{
	struct artifact_bytes file = { NULL, 0 };

	put_kind(MT_KIND_FOOTER, 7);
	put_numbers(5, (uint64_t[]){ 1, 2, 0, 0, 0 });
	put_numbers(1, (uint64_t[]){ XXH64(buffer.data, buffer.size, 0) });
	artifact_append_frame(&file, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	ck_assert_int_eq(artifact_read(file.bytes, file.len, ret, ret_text), 0);
	free(file.bytes);
}

struct mapping {
	uint64_t start, end, module;
};

static void put_mappings(uint64_t id, const struct mapping *mappings, size_t n)
{
	put_kind(MT_KIND_MAPPINGS, 3);
	msgpack_pack_uint64(&packer, id);
	msgpack_pack_array(&packer, n);
	for (size_t i = 0; i < n; i++) {
		msgpack_pack_array(&packer, 5);
		msgpack_pack_uint64(&packer, mappings[i].start);
		msgpack_pack_uint64(&packer, mappings[i].end);
		msgpack_pack_int(&packer, 7);
		msgpack_pack_uint64(&packer, mappings[i].module);
		msgpack_pack_int(&packer, MT_MAPPING_FOUND);
	}
}

struct kept {
	uint64_t thread, node, mappings, start, end;
	size_t len;
};

static void put_kept_stack(const struct kept *kept)
{
	static const char words[MT_BUDGET_MAX_BYTES + 8] = "\1\2\3\4\5\6\7\x80";

	put_kind(MT_KIND_KEPT_STACK, 11); /* one is a later writer's */
	msgpack_pack_uint64(&packer, kept->thread);
	msgpack_pack_uint64(&packer, kept->node);
	msgpack_pack_uint64(&packer, kept->mappings);
	msgpack_pack_int(&packer, MT_KEPT_BOTTOM);
	msgpack_pack_uint64(&packer, kept->start);
	msgpack_pack_uint64(&packer, kept->end);
	msgpack_pack_int(&packer, 3);
	msgpack_pack_int(&packer, 5);
	msgpack_pack_bin_with_body(&packer, words, kept->len);
	msgpack_pack_nil(&packer);
}

static const struct mapping two[] = { { 1, 3, 0 }, { 3, 4, 0 } }, third = { 4, 9, 0 };
static const struct kept smallest = { 1, 15, 0, 4096, 4104, 8 };
static const struct kept largest = { 1, 15, 0, 1 << 20, (1 << 20) + 65536, 65536 };

START_TEST(kept_stacks)
{
	struct mt_reader_result result;
	char *text;

	begin();
	put_mappings(0, two, 2);
	put_mappings(0, &third, 1);
	put_kept_stack(&smallest);
	put_kept_stack(&largest);
	put_mappings(1, two, 2);
	end(&result, &text);
	ck_assert_str_eq(result.problem, "");
	ck_assert_uint_eq(result.skipped, 0);
	ck_assert_ptr_nonnull(strstr(text, "mappings id=0 map=0x1,0x3,0x7,0,1 map=0x3,0x4,0x7,0,1\n"
					   "mappings id=0 map=0x4,0x9,0x7,0,1\n"
					   "kept-stack thread=1 node=15 mappings=0 flags=1 "
					   "start=0x1000 epoch=3 digest=0x5 "
					   "words=0x8007060504030201\n"
					   "kept-stack"));
	ck_assert_ptr_nonnull(strstr(text, ",0x0\nmappings id=1"));
	free(text);
}
END_TEST

/* Each is refused, and the file's records end there. */
START_TEST(bad_kept_stacks)
{
	static const struct kept bad[] = {
		{ 0, 15, 0, 4096, 4104, 8 },
		{ 2, 15, 0, 4096, 4104, 8 },
		{ 1, 16, 0, 4096, 4104, 8 },
		{ 1, 1ULL << 32, 0, 4096, 4104, 8 },
		{ 1, 15, 1, 4096, 4104, 8 },
		{ 1, 15, 0, 4097, 4105, 8 },
		{ 1, 15, 0, 4096, 4100, 4 },
		{ 1, 15, 0, 4096, 4096, 0 },
		{ 1, 15, 0, 4104, 4096, 8 },
		{ 1, 15, 0, 4096, 4104, 0 },
		{ 1, 15, 0, 4096, 4104, 7 },
		{ 1, 15, 0, 4096, 4104, 16 },
		{ 1, 15, 0, 1 << 20, (1 << 20) + 65544, 65544 },
		{ 1, 15, 0, (1 << 20) + 8, (1 << 20) + 8 + 65536, 65536 },
		{ 1, 15, 0, (1ULL << 56) - 8, 1ULL << 56, 8 },
		{ 1, 15, 0, UINT64_MAX - 7, 0, 8 },
		{ 1, 15, 0, 0, UINT64_MAX - 7, 8 },
	};
	struct mt_reader_result result;
	char *text;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		put_mappings(0, two, 2);
		put_kept_stack(&bad[i]);
		put_kept_stack(&smallest);
		end(&result, &text);
		ck_assert_msg(strstr(result.problem, "kept"), "%zu: %s", i, result.problem);
		ck_assert_int_eq(result.complete, 0);
		ck_assert_ptr_nonnull(strstr(text, "mappings id=0"));
		ck_assert_ptr_null(strstr(text, "kept-stack"));
		free(text);
	}
}
END_TEST

START_TEST(bad_mappings)
{
	static struct mapping many[MT_MAPPINGS_LEN + 1];
	static const struct {
		uint64_t id;
		size_t n;
		struct mapping mappings[2];
	} bad[] = {
		{ 2, 1, { { 1, 2, 0 } } },
		{ UINT32_MAX, 1, { { 1, 2, 0 } } },
		{ 1ULL << 32, 1, { { 1, 2, 0 } } },
		{ 1, 1, { { 1, 1, 0 } } },
		{ 1, 1, { { 2, 1, 0 } } },
		{ 1, 2, { { 1, 3, 0 }, { 2, 4, 0 } } },
		{ 1, 2, { { 3, 4, 0 }, { 1, 2, 0 } } },
		{ 1, 1, { { 1, 2, 1 } } },
		{ 1, 1, { { 1, 2, UINT32_MAX } } },
		{ 0, 1, { { 3, 5, 0 } } },
		/* A stack has named them. */
		{ 0, 1, { { 4, 5, 0 } } },
		{ 1, MT_MAPPINGS_LEN + 1, { { 0 } } },
	};
	struct mt_reader_result result;
	char *text;

	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		many[i] = (struct mapping){ 2 * i, 2 * i + 1, 0 };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		put_mappings(0, two, 2);
		if (i != 9)
			put_kept_stack(&smallest);
		put_mappings(bad[i].id, bad[i].n > 2 ? many : bad[i].mappings, bad[i].n);
		end(&result, &text);
		ck_assert_msg(strstr(result.problem, "mappings"), "%zu: %s", i, result.problem);
		ck_assert_int_eq(result.complete, 0);
		ck_assert_ptr_null(strstr(strstr(text, "mappings id=0") + 1, "\nmappings"));
		free(text);
	}
	begin();
	put_mappings(0, many, MT_MAPPINGS_LEN);
	end(&result, NULL);
	ck_assert_str_eq(result.problem, "");
}
END_TEST

/* Not only of the mappings that it names. */
START_TEST(a_stack_ends_the_list)
{
	struct mt_reader_result result;

	begin();
	put_mappings(0, two, 2);
	put_mappings(1, two, 2);
	put_kept_stack(&smallest);
	put_mappings(1, &third, 1);
	end(&result, NULL);
	ck_assert_str_eq(result.problem, "mappings 1 overlap");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kept_stacks");
	TCase *tcase = tcase_create("kept_stacks");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, kept_stacks);
	tcase_add_test(tcase, bad_kept_stacks);
	tcase_add_test(tcase, bad_mappings);
	tcase_add_test(tcase, a_stack_ends_the_list);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
