/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_artifact.c - artifact/reader.c: what was written comes back, and damage is told
 *
 * Damage is made in two places: in the file, where zstd's checksums see most of it, and in
 * the records, which are then put into a good frame again.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "artifact/layout.h"
#include "artifact/unpack.h"
#include "artifact/weight.h"
#include "tests/sample_artifact.h"

static struct artifact_bytes good;
static char *good_text;
static struct artifact_bytes content;

static void setup(void)
{
	good = sample_artifact(&good_text);
	content = artifact_content(good);
}

static void teardown(void)
{
	free(good.bytes);
	free(good_text);
	free(content.bytes);
}

/* Reads a file of one frame with these records. */
static int read_content(const void *bytes, size_t len, struct mt_reader_result *ret,
			char **ret_text)
{
	struct artifact_bytes file = { NULL, 0 };
	int r;

	artifact_append_frame(&file, bytes, len);
	r = artifact_read(file.bytes, file.len, ret, ret_text);
	free(file.bytes);
	return r;
}

static int is_prefix(const char *text, const char *of)
{
	return strncmp(text, of, strlen(text)) == 0;
}

START_TEST(all_comes_back)
{
	struct mt_reader_result result;
	char *text;

	ck_assert_int_eq(artifact_read(good.bytes, good.len, &result, &text), 0);
	ck_assert_str_eq(text, good_text);
	ck_assert_str_eq(result.problem, "");
	ck_assert_int_eq(result.complete, 1);
	ck_assert_uint_eq(result.version, MT_FORMAT_VERSION);
	ck_assert_uint_eq(result.good_bytes, good.len);
	ck_assert_uint_eq(result.file_bytes, good.len);
	ck_assert_uint_eq(result.skipped, 0);
	free(text);
}
END_TEST

START_TEST(frames_do_not_matter)
{
	struct artifact_bytes file = { NULL, 0 };
	struct mt_unpack at = { content.bytes, content.bytes + content.len };
	struct mt_reader_result result;
	char *text;

	ck_assert_int_eq(read_content(content.bytes, content.len, &result, &text), 0);
	ck_assert_str_eq(text, good_text);
	ck_assert_str_eq(result.problem, "");
	free(text);

	/* A frame for each record, with empty and skippable ones before and after it. */
	while (at.pos < at.end) {
		uint8_t *start = at.pos;

		artifact_append(&file, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
		ck_assert_int_eq(mt_unpack_skip(&at), 0);
		artifact_append_frame(&file, start, (size_t)(at.pos - start));
		artifact_append_frame(&file, "", 0);
		artifact_append(&file, "\x5f\x2a\x4d\x18\0\0\0\0", 8);
	}
	ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
	ck_assert_str_eq(text, good_text);
	ck_assert_str_eq(result.problem, "");
	ck_assert_int_eq(result.complete, 1);
	ck_assert_uint_eq(result.good_bytes, file.len);
	free(text);
	free(file.bytes);
}
END_TEST

/* What was whole is delivered, and it is said that more was to come. */
START_TEST(every_truncation)
{
	uint64_t last_good = 0;
	size_t last_text = 0;

	for (size_t len = 0; len < good.len; len++) {
		struct mt_reader_result result;
		char *text;
		int r = artifact_read(good.bytes, len, &result, &text);

		ck_assert_int_eq(r, *text ? 0 : -EBADMSG);
		ck_assert_int_eq(result.complete, strcmp(text, good_text) == 0);
		ck_assert_str_ne(result.problem, "");
		ck_assert_uint_eq(result.file_bytes, len);
		ck_assert_uint_le(result.good_bytes, len);
		ck_assert(is_prefix(text, good_text));
		/* Text comes with frames, and frames when their last byte is there. */
		ck_assert_uint_ge(strlen(text), last_text);
		if (result.good_bytes != last_good)
			ck_assert_uint_eq(result.good_bytes, len);
		else
			ck_assert_uint_eq(strlen(text), last_text);
		last_good = result.good_bytes;
		last_text = strlen(text);
		free(text);
	}
	ck_assert_uint_gt(last_good, good.len / 2);
}
END_TEST

/* Also where zstd would read the same: it ignores some bits. */
START_TEST(every_bit_of_the_file)
{
	for (size_t i = 0; i < 8 * good.len; i++) {
		struct mt_reader_result result;
		char *text;
		int r;

		good.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		r = artifact_read(good.bytes, good.len, &result, &text);
		good.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		ck_assert(r == 0 || r == -EBADMSG);
		ck_assert_msg(result.problem[0], "byte %zu, bit %zu", i / 8, i % 8);
		ck_assert(is_prefix(text, good_text));
		free(text);
	}
}
END_TEST

START_TEST(every_byte_of_the_records)
{
	for (size_t i = 0; i < content.len; i++) {
		struct mt_reader_result result;
		int r;

		content.bytes[i] ^= (uint8_t)(1u << i % 8);
		r = read_content(content.bytes, content.len, &result, NULL);
		content.bytes[i] ^= (uint8_t)(1u << i % 8);
		ck_assert_msg(r < 0 || result.problem[0], "byte %zu", i);
	}
}
END_TEST

START_TEST(every_truncation_of_the_records)
{
	for (size_t len = 0; len < content.len; len++) {
		struct mt_reader_result result;
		int r = read_content(content.bytes, len, &result, NULL);

		ck_assert(r == 0 || r == -EBADMSG);
		ck_assert_int_eq(result.complete, 0);
		ck_assert_str_ne(result.problem, "");
	}
}
END_TEST

/* A record that is lost, doubled or moved. */
START_TEST(every_record_counts)
{
	struct mt_unpack at = { content.bytes, content.bytes + content.len };

	while (at.pos < at.end) {
		uint8_t *start = at.pos;
		struct artifact_bytes less = { NULL, 0 }, more = { NULL, 0 };
		struct mt_reader_result result;
		int r;

		ck_assert_int_eq(mt_unpack_skip(&at), 0);
		artifact_append(&less, content.bytes, (size_t)(start - content.bytes));
		artifact_append(&more, content.bytes, (size_t)(at.pos - content.bytes));
		artifact_append(&more, start, (size_t)(at.end - start));
		artifact_append(&less, at.pos, (size_t)(at.end - at.pos));
		r = read_content(less.bytes, less.len, &result, NULL);
		ck_assert(r < 0 || result.problem[0]);
		r = read_content(more.bytes, more.len, &result, NULL);
		ck_assert(r < 0 || result.problem[0]);
		free(less.bytes);
		free(more.bytes);
	}
}
END_TEST

START_TEST(after_the_footer)
{
	static const struct {
		const char *bytes;
		size_t len;
	} tails[] = {
		{ "x", 1 }, { "\0\0\0\0", 4 }, { "hello, hello", 12 }, { "\x28\xb5\x2f\xfd", 4 }
	};
	struct mt_reader_result result;
	char *text;

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct artifact_bytes file = { NULL, 0 };

		artifact_append(&file, good.bytes, good.len);
		artifact_append(&file, tails[i].bytes, tails[i].len);
		ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
		ck_assert_str_eq(text, good_text);
		ck_assert_str_ne(result.problem, "");
		ck_assert_uint_eq(result.good_bytes, good.len);
		ck_assert_uint_eq(result.file_bytes, file.len);
		free(text);
		free(file.bytes);
	}

	struct artifact_bytes twice = { NULL, 0 };

	artifact_append(&twice, good.bytes, good.len);
	artifact_append(&twice, good.bytes, good.len);
	ck_assert_int_eq(artifact_read(twice.bytes, twice.len, &result, &text), 0);
	ck_assert_str_eq(text, good_text);
	ck_assert_str_ne(result.problem, "");
	free(text);
	free(twice.bytes);
}
END_TEST

/* Records of a file that the tests below make themselves. */
static msgpack_sbuffer buffer;
static msgpack_packer packer;

static void put_kind(const char *kind, size_t elements)
{
	msgpack_pack_array(&packer, elements);
	msgpack_pack_str_with_body(&packer, kind, strlen(kind));
}

static void begin_records(uint64_t version)
{
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	put_kind(MT_SIGNATURE, 2);
	msgpack_pack_uint64(&packer, version);
}

static void put_numbers(int n)
{
	for (int i = 1; i <= n; i++)
		msgpack_pack_int(&packer, i);
}

static void put_string(const char *text)
{
	msgpack_pack_bin_with_body(&packer, text, strlen(text));
}

static void put_header(void)
{
	put_kind(MT_KIND_HEADER, 8);
	put_numbers(4);
	put_string("x86_64");
	put_string("test");
	msgpack_pack_array(&packer, 0);
}

static void put_thread(void)
{
	put_kind(MT_KIND_PROCESS, 8);
	msgpack_pack_int(&packer, 1);
	msgpack_pack_int(&packer, 0);
	put_numbers(3);
	put_string("exe");
	put_string("name");
	put_kind(MT_KIND_THREAD, 6);
	msgpack_pack_int(&packer, 1);
	msgpack_pack_int(&packer, 1);
	put_numbers(2);
	put_string("name");
}

static void put_column(const char *name, const char *encoding, const char *bytes, size_t len)
{
	msgpack_pack_array(&packer, 3);
	msgpack_pack_str_with_body(&packer, name, strlen(name));
	msgpack_pack_str_with_body(&packer, encoding, strlen(encoding));
	msgpack_pack_bin_with_body(&packer, bytes, len);
}

static void put_block(const char *kind, uint64_t first, uint64_t rows, size_t columns)
{
	put_kind(kind, 4);
	msgpack_pack_uint64(&packer, first);
	msgpack_pack_uint64(&packer, rows);
	msgpack_pack_array(&packer, columns);
}

static void put_infos(const char *node, const char *type)
{
	put_block(MT_KIND_INFOS, 0, 1, 4);
	put_column("node", "varint", node, 1);
	put_column("size", "varint", "\x10", 1);
	put_column("type", "varint", type, 1);
	put_column("function", "varint", "\x01", 1);
}

static void put_footer(void)
{
	put_kind(MT_KIND_FOOTER, 7);
	put_numbers(5);
	msgpack_pack_uint64(&packer, XXH64(buffer.data, buffer.size, 0));
}

/* Reads what was put; says what the problem was. */
static int read_records(struct mt_reader_result *ret, char **ret_text)
{
	int r = read_content(buffer.data, buffer.size, ret, ret_text);

	msgpack_sbuffer_destroy(&buffer);
	return r;
}

static const char footer_text[] = "footer end=1 status=2 events=3 lost_events=4 lost_stacks=5\n";

START_TEST(unknown_kinds_are_skipped)
{
	struct mt_reader_result result;
	char *text;

	begin_records(1);
	put_header();
	put_kind("later", 1);
	put_kind("later", 3);
	msgpack_pack_map(&packer, 1);
	put_numbers(3);
	put_kind("", 2);
	msgpack_pack_nil(&packer);
	put_thread();
	put_footer();
	ck_assert_int_eq(read_records(&result, &text), 0);
	ck_assert_str_eq(result.problem, "");
	ck_assert_int_eq(result.complete, 1);
	ck_assert_uint_eq(result.skipped, 3);
	ck_assert_ptr_nonnull(strstr(text, "thread id=1"));
	ck_assert_ptr_nonnull(strstr(text, footer_text));
	free(text);
}
END_TEST

static const char blocks_text[] = "process-end id=1 end=2 status=3\n"
				  "alloc time=7 thread=1 node=0 address=0x5 size=16 function=1\n"
				  "alloc time=8 thread=1 node=0 address=0x5 size=16 function=1\n"
				  "footer";

START_TEST(unknown_elements_and_columns_are_ignored)
{
	struct mt_reader_result result;
	char *text;

	begin_records(1);
	put_header();
	put_thread();
	put_kind(MT_KIND_PROCESS_END, 6);
	put_numbers(5);
	put_infos("\0", "\x01");
	put_block(MT_KIND_EVENTS, 0, 2, 5);
	put_column("later", "unknown", "abc", 3);
	put_column("address", "runs", "\x05\x01", 2);
	put_column("time", "varint", "\x07\x08", 2);
	put_column("info", "runs", "\0\x01", 2);
	put_column("thread", "delta", "\x02\0", 2);
	put_footer();
	ck_assert_int_eq(read_records(&result, &text), 0);
	ck_assert_str_eq(result.problem, "");
	ck_assert_uint_eq(result.skipped, 0);
	ck_assert_ptr_nonnull(strstr(text, blocks_text));
	free(text);
}
END_TEST

/* Blocks whose columns can not be right; each reads until there, and says so. */
START_TEST(bad_blocks)
{
	struct mt_reader_result result;
	uint64_t rows = 2;
	char *text;

	begin_records(1);
	put_header();
	put_thread();
	if (_i == 1)
		put_infos("\x0f", "\x00");
	else if (_i == 2)
		put_infos("\x0f", "\x07");
	else if (_i == 3)
		put_infos("\x10", "\x01");
	else
		put_infos("\x0f", "\x06");
	if (_i == 5 || _i == 6)
		rows = _i == 5 ? MT_BLOCK_ROWS + 1 : UINT64_MAX;
	put_block(MT_KIND_EVENTS, _i == 4 ? 1 : 0, rows, _i == 7 ? 3 : 4);
	put_column("info", _i == 8 ? "runs2" : "runs", _i == 9 ? "\x01\x01" : "\0\x01", 2);
	put_column("thread", "varint", _i == 10 ? "\x01\x02" : _i == 11 ? "\x01\0" : "\x01\x01", 2);
	put_column(_i == 12 ? "thread" : "time", "varint", "\x07\x08\x09", _i == 13 ? 3 : 2);
	if (_i != 7)
		put_column("address", "varint", "\x07\x80\x81", _i == 14 ? 1 : 3);
	put_footer();
	ck_assert_int_eq(read_records(&result, &text), 0);
	ck_assert_str_ne(result.problem, "");
	ck_assert_int_eq(result.complete, 0);
	ck_assert_ptr_nonnull(strstr(text, "thread id=1"));
	ck_assert_ptr_null(strstr(text, "alloc"));
	if (_i == 8)
		ck_assert_ptr_nonnull(strstr(result.problem, "not known"));
	free(text);
}
END_TEST

/* A symbol of so many elements, a number where a name should be if it is not named. */
static void put_symbol(size_t elements, bool named)
{
	msgpack_pack_array(&packer, elements);
	put_numbers(3);
	if (named && elements > 3)
		put_string("f");
	else if (elements > 3)
		put_numbers(1);
	for (size_t i = 4; i < elements; i++)
		msgpack_pack_nil(&packer);
}

/* 0: what a newer writer may add; the others are refused. */
START_TEST(symbols_that_are_none)
{
	size_t len = _i == 1 ? MT_SYMBOLS_LEN + 1 : 2;
	struct mt_reader_result result;
	char *text;

	begin_records(1);
	put_header();
	put_kind(MT_KIND_MODULE, 5);
	msgpack_pack_int(&packer, 0);
	put_numbers(1);
	put_string("/lib");
	put_string("");
	put_kind(MT_KIND_SYMBOLS, _i == 2 ? 3 : 5);
	msgpack_pack_int(&packer, _i == 3 ? 1 : 0);
	msgpack_pack_int(&packer, _i == 4 ? -1 : 0);
	if (_i != 2)
		msgpack_pack_array(&packer, len);
	for (size_t i = 0; _i != 2 && i < len; i++)
		put_symbol(_i == 5 ? 3 : 4 + (_i == 0), _i != 6);
	if (_i != 2)
		msgpack_pack_nil(&packer);
	put_footer();
	ck_assert_int_eq(read_records(&result, &text), 0);
	ck_assert_int_eq(result.complete, _i == 0);
	ck_assert_int_eq(strstr(text, "symbol=0x1,0x2,3,f symbol=0x1,0x2,3,f\n") != NULL, _i == 0);
	ck_assert_int_eq(strstr(result.problem, "symbols") != NULL, _i != 0);
	free(text);
}
END_TEST

START_TEST(newer_versions)
{
	static const uint64_t versions[] = { 2, UINT32_MAX, 1ULL << 32, UINT64_MAX };
	struct mt_reader_result result;
	char *text;

	for (size_t i = 0; i < 4; i++) {
		begin_records(versions[i]);
		put_kind("what comes then", 1);
		ck_assert_int_eq(read_records(&result, &text), -EPROTONOSUPPORT);
		ck_assert_str_eq(text, "");
		ck_assert_uint_eq(result.version,
				  versions[i] > UINT32_MAX ? UINT32_MAX : versions[i]);
		free(text);
	}
	begin_records(0);
	put_header();
	ck_assert_int_eq(read_records(&result, &text), -EBADMSG);
	free(text);
}
END_TEST

START_TEST(what_is_no_artifact)
{
	/* clang-format off */
	static const struct {
		const char *content;
		size_t len;
	} contents[] = {
		{ "", 0 }, { "\xc0\xc0\xc0", 3 }, { "\x07", 1 }, { "\x93\x01\x02\x03", 4 },
		{ "\x81\xa1t\xa4head", 8 }, { "\x90", 1 },
		{ "\x92\xb1memtrack artifact", 19 }, { "\x91\xb1memtrack artifact", 19 },
		{ "\x92\xb1memtrack artifact\xa1\x31", 21 },
		{ "\x92\xb1memtrack artefact\x01", 20 },
		{ "\x92\xb1memtrack artifact\x01\x91\xa6\x66ooter", 28 },
		{ "\x92\xb1memtrack artifact\x01\x91\xa6header", 28 },
	};
	/* clang-format on */
	struct mt_reader_result result;
	char *text;

	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		ck_assert_int_eq(read_content(contents[i].content, contents[i].len, &result, &text),
				 -EBADMSG);
		ck_assert_str_eq(text, "");
		ck_assert_str_ne(result.problem, "");
		free(text);
		ck_assert_int_eq(artifact_read(contents[i].content, contents[i].len, &result, NULL),
				 -EBADMSG);
	}
}
END_TEST

static int read_path(const char *path, struct mt_reader_result *ret)
{
	static const struct mt_reader_callbacks none;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	ck_assert_int_ge(fd, 0);
	r = mt_reader_read(fd, &none, NULL, ret);
	close(fd);
	return r;
}

START_TEST(things_that_are_no_file)
{
	struct mt_reader_result result;

	ck_assert_int_eq(read_path("/dev/zero", &result), -EBADMSG);
	ck_assert_int_eq(read_path("/dev/null", &result), -EBADMSG);
	ck_assert_int_eq(read_path("/", &result), -EISDIR);
}
END_TEST

static int count(void *ctx, const struct mt_event *event)
{
	int *left = ctx;

	return --*left == 0 ? -ECANCELED : 1;
}

START_TEST(a_callback_ends_it)
{
	const struct mt_reader_callbacks callbacks = { .event = count };
	struct mt_reader_result result;
	int fd = artifact_fd(good.bytes, good.len);
	int left = 250;

	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &left, &result), -ECANCELED);
	ck_assert_int_eq(left, 0);
	ck_assert_int_eq(result.complete, 0);
	close(fd);
}
END_TEST

/* A few bytes that would be gigabytes; memory is what Bounds says. */
START_TEST(bombs)
{
	size_t len = _i == 0 ? MT_READER_FRAME_BYTES + 1 : MT_READER_FRAME_BYTES - 100;
	struct artifact_bytes file = { NULL, 0 };
	uint8_t *bytes = malloc(len);
	struct mt_reader_result result;
	struct rusage usage;
	char *text;

	ck_assert_ptr_nonnull(bytes);
	memset(bytes, _i == 1 ? 0xc0 : 0x90, len);
	begin_records(1);
	put_header();
	artifact_append_frame(&file, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	if (_i == 2) /* one array of nil, with a length that is true */
		memcpy(bytes, "\xdd\x03\xff\xff\x97\xa3\x61\x62\x63", 9);
	for (int i = 0; i < 4; i++)
		artifact_append_frame(&file, bytes, len);
	free(bytes);
	ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
	ck_assert_str_ne(result.problem, "");
	ck_assert_uint_lt(result.good_bytes, 200);
	free(text);
	free(file.bytes);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	ck_assert_int_lt(usage.ru_maxrss, 512 * 1024);
}
END_TEST

/* Blocks of runs hold their rows in no space at all. */
START_TEST(rows_for_nothing)
{
	struct mt_reader_result result;

	begin_records(1);
	put_header();
	for (size_t i = 0; i <= MT_WEIGHT_ALWAYS / MT_WEIGHT_ROW / MT_BLOCK_ROWS; i++) {
		put_block(MT_KIND_INFOS, 0, MT_BLOCK_ROWS, 4);
		put_column("node", "runs", "\0\xff\xff\x03", 4);
		put_column("size", "runs", "\0\xff\xff\x03", 4);
		put_column("type", "runs", "\1\xff\xff\x03", 4);
		put_column("function", "runs", "\1\xff\xff\x03", 4);
	}
	put_footer();
	ck_assert_int_eq(read_records(&result, NULL), 0);
	ck_assert_str_eq(result.problem, "more than a recording has in so many bytes: infos");
	ck_assert_int_eq(result.complete, 0);
}
END_TEST

static int count_nodes(void *ctx, const struct mt_node *node)
{
	*(uint32_t *)ctx = node->id + 1 - MT_NODE_FIRST;
	return 0;
}

/* Each node below the one before: as many as a chain may have, and one more. */
START_TEST(long_chains)
{
	const struct mt_reader_callbacks callbacks = { .node = count_nodes };
	uint32_t rows = MT_READER_CHAIN_FRAMES + (uint32_t)_i, n = 0;
	static char parents[MT_READER_CHAIN_FRAMES + 1];
	static const char zeros[MT_READER_CHAIN_FRAMES + 1];
	struct artifact_bytes file = { NULL, 0 };
	struct mt_reader_result result;
	int fd;

	memset(parents, 2, sizeof(parents)); /* one more than the parent before */
	parents[1] = 2 * (MT_NODE_FIRST - 1);
	begin_records(1);
	put_header();
	put_block(MT_KIND_NODES, MT_NODE_FIRST, rows, 4);
	put_column("parent", "delta", parents, rows);
	/* The run goes on for 16,383 or 16,384 more. */
	put_column("module", "runs",
		   _i ? "\xff\xff\xff\xff\x0f\x80\x80\x01" : "\xff\xff\xff\xff\x0f\xff\x7f",
		   _i ? 8 : 7);
	put_column("offset", "varint", zeros, rows);
	put_column("exact", "varint", zeros, rows);
	artifact_append_frame(&file, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	fd = artifact_fd(file.bytes, file.len);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &n, &result), 0);
	ck_assert_str_eq(result.problem,
			 _i ? "a chain of more than 16384 frames" : "it has no footer");
	ck_assert_uint_eq(n, MT_READER_CHAIN_FRAMES);
	close(fd);
	free(file.bytes);
}
END_TEST

START_TEST(many_small_frames)
{
	struct artifact_bytes file = { NULL, 0 }, empty = { NULL, 0 }, all = { NULL, 0 };
	struct mt_reader_result result;
	size_t n = 200000;

	begin_records(1);
	put_header();
	artifact_append_frame(&file, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	artifact_append_frame(&empty, "", 0);
	all.len = file.len + n * empty.len;
	all.bytes = malloc(all.len);
	ck_assert_ptr_nonnull(all.bytes);
	memcpy(all.bytes, file.bytes, file.len);
	for (size_t i = 0; i < n; i++)
		memcpy(all.bytes + file.len + i * empty.len, empty.bytes, empty.len);
	ck_assert_int_eq(artifact_read(all.bytes, all.len, &result, NULL), 0);
	ck_assert_uint_eq(result.good_bytes, all.len);
	ck_assert_str_eq(result.problem, "it has no footer");
	free(file.bytes);
	free(empty.bytes);
	free(all.bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("artifact");
	TCase *tcase = tcase_create("artifact");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, all_comes_back);
	tcase_add_test(tcase, frames_do_not_matter);
	tcase_add_test(tcase, every_truncation);
	tcase_add_test(tcase, every_bit_of_the_file);
	tcase_add_test(tcase, every_byte_of_the_records);
	tcase_add_test(tcase, every_truncation_of_the_records);
	tcase_add_test(tcase, every_record_counts);
	tcase_add_test(tcase, after_the_footer);
	tcase_add_test(tcase, unknown_kinds_are_skipped);
	tcase_add_test(tcase, unknown_elements_and_columns_are_ignored);
	tcase_add_loop_test(tcase, bad_blocks, 1, 15);
	tcase_add_loop_test(tcase, symbols_that_are_none, 0, 7);
	tcase_add_test(tcase, newer_versions);
	tcase_add_test(tcase, what_is_no_artifact);
	tcase_add_test(tcase, things_that_are_no_file);
	tcase_add_test(tcase, a_callback_ends_it);
	tcase_add_loop_test(tcase, bombs, 0, 3);
	tcase_add_test(tcase, rows_for_nothing);
	tcase_add_loop_test(tcase, long_chains, 0, 2);
	tcase_add_test(tcase, many_small_frames);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
