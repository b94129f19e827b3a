/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_columns.c - artifact/columns.c: values come back, and nothing else is one
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/columns.h"

static const struct {
	const char *encoding;
	void (*append)(struct mt_column *column, uint64_t value);
} encodings[] = {
	{ "varint", mt_column_varint },
	{ "delta", mt_column_delta },
	{ "runs", mt_column_runs },
};

#define N_ENCODINGS (int)(sizeof(encodings) / sizeof(encodings[0]))

/* A copy of the bytes that ends where an unreadable page begins. */
static const uint8_t *at_page_end(const uint8_t *bytes, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (len + page - 1) / page + 1;
	uint8_t *map = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_eq(mprotect(map + pages * page, page, PROT_NONE), 0);
	memcpy(map + pages * page - len, bytes, len);
	return map + pages * page - len;
}

static int decode(const char *encoding, const uint8_t *bytes, size_t len, size_t n, uint64_t *ret)
{
	return mt_column_decode(encoding, strlen(encoding), bytes, len, n, ret);
}

static uint64_t edge(size_t i)
{
	uint64_t bit = 1ULL << i / 3 % 64;

	return i % 3 == 0 ? bit : i % 3 == 1 ? bit - 1 : 0 - bit;
}

START_TEST(values_come_back)
{
	static uint64_t ret[MT_BLOCK_ROWS];
	struct mt_column column;

	ck_assert_int_eq(mt_column_init(&column, "x", encodings[_i].encoding), 0);
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < 1000; i++)
			for (size_t run = 0; run <= i % 4; run++)
				encodings[_i].append(&column, edge(i));
		mt_column_end(&column);
		ck_assert_int_eq(decode(column.encoding, at_page_end(column.bytes, column.len),
					column.len, 2500, ret),
				 0);
		for (size_t i = 0, row = 0; i < 1000; i++)
			for (size_t run = 0; run <= i % 4; run++)
				ck_assert_uint_eq(ret[row++], edge(i));
		mt_column_reset(&column);
	}
	mt_column_done(&column);
}
END_TEST

START_TEST(longest_block_fits)
{
	static uint64_t ret[MT_BLOCK_ROWS];
	struct mt_column column;

	ck_assert_int_eq(mt_column_init(&column, "x", encodings[_i].encoding), 0);
	for (size_t i = 0; i < MT_BLOCK_ROWS; i++)
		encodings[_i].append(&column, i % 2 ? 1ULL << 63 : UINT64_MAX);
	mt_column_end(&column);
	ck_assert_uint_le(column.len, MT_COLUMN_BYTES);
	ck_assert_int_eq(decode(column.encoding, column.bytes, column.len, MT_BLOCK_ROWS, ret), 0);
	for (size_t i = 0; i < MT_BLOCK_ROWS; i++)
		ck_assert_uint_eq(ret[i], i % 2 ? 1ULL << 63 : UINT64_MAX);
	mt_column_done(&column);
}
END_TEST

START_TEST(no_rows_are_no_bytes)
{
	uint64_t ret = 7;

	ck_assert_int_eq(
		decode(encodings[_i].encoding, at_page_end((const uint8_t *)"", 0), 0, 0, &ret), 0);
	ck_assert_int_eq(
		decode(encodings[_i].encoding, at_page_end((const uint8_t *)"", 0), 0, 1, &ret),
		-EBADMSG);
	ck_assert_int_eq(decode(encodings[_i].encoding, (const uint8_t *)"\0", 1, 0, &ret),
			 -EBADMSG);
	ck_assert_uint_eq(ret, 7);
}
END_TEST

START_TEST(too_few_and_too_many)
{
	static uint64_t ret[MT_BLOCK_ROWS];
	struct mt_column column;

	ck_assert_int_eq(mt_column_init(&column, "x", encodings[_i].encoding), 0);
	for (size_t i = 0; i < 100; i++)
		encodings[_i].append(&column, edge(i));
	mt_column_end(&column);
	for (size_t len = 0; len < column.len; len++)
		ck_assert_int_eq(
			decode(column.encoding, at_page_end(column.bytes, len), len, 100, ret),
			-EBADMSG);
	for (size_t n = 0; n < 200; n++)
		ck_assert_int_eq(decode(column.encoding, column.bytes, column.len, n, ret),
				 n == 100 ? 0 : -EBADMSG);
	mt_column_done(&column);
}
END_TEST

START_TEST(a_varint_has_64_bits)
{
	uint64_t ret;

	ck_assert_int_eq(decode("varint",
				(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 1,
				&ret),
			 0);
	ck_assert_uint_eq(ret, UINT64_MAX);
	ck_assert_int_eq(decode("varint",
				(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 1,
				&ret),
			 -EBADMSG);
	ck_assert_int_eq(decode("varint",
				(const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11,
				1, &ret),
			 -EBADMSG);
}
END_TEST

START_TEST(a_run_ends_with_the_block)
{
	uint64_t ret[4] = { 0, 0, 0, 7 };

	ck_assert_int_eq(decode("runs", (const uint8_t *)"\x05\x02", 2, 3, ret), 0);
	ck_assert_uint_eq(ret[2], 5);
	ck_assert_int_eq(decode("runs", (const uint8_t *)"\x05\x03", 2, 3, ret), -EBADMSG);
	ck_assert_int_eq(decode("runs",
				(const uint8_t *)"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
				3, ret),
			 -EBADMSG);
	ck_assert_uint_eq(ret[3], 7);
}
END_TEST

START_TEST(unknown_encodings)
{
	uint64_t ret;

	ck_assert_int_eq(decode("", (const uint8_t *)"\0", 1, 1, &ret), -ENOTSUP);
	ck_assert_int_eq(decode("varint2", (const uint8_t *)"\0", 1, 1, &ret), -ENOTSUP);
	ck_assert_int_eq(decode("varin", (const uint8_t *)"\0", 1, 1, &ret), -ENOTSUP);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("columns");
	TCase *tcase = tcase_create("columns");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, values_come_back, 0, N_ENCODINGS);
	tcase_add_loop_test(tcase, longest_block_fits, 0, N_ENCODINGS);
	tcase_add_loop_test(tcase, no_rows_are_no_bytes, 0, N_ENCODINGS);
	tcase_add_loop_test(tcase, too_few_and_too_many, 0, N_ENCODINGS);
	tcase_add_test(tcase, a_varint_has_64_bits);
	tcase_add_test(tcase, a_run_ends_with_the_block);
	tcase_add_test(tcase, unknown_encodings);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
