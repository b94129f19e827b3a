/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_symbol_table.c - which symbols are functions, in what pieces they come, what is left out
 */
#include "collector/symbol_table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/format.h"

static struct mt_symbol_table table;

static void teardown(void)
{
	mt_symbol_table_done(&table);
	table = (struct mt_symbol_table){ 0 };
}

/* strings_len bytes of strings, and a NUL behind that does not count. */
static void read_table(const Elf64_Sym *syms, size_t len, const char *strings, size_t strings_len)
{
	ck_assert_int_eq(mt_symbol_table_read(syms, len, strings, strings_len, &table), 0);
}

static Elf64_Sym function(uint32_t name, uint64_t value)
{
	return (Elf64_Sym){ .st_name = name,
			    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			    .st_shndx = 1,
			    .st_value = value,
			    .st_size = 8 };
}

START_TEST(functions_only)
{
	static const char strings[] = "\0one\0two";
	Elf64_Sym syms[12];

	for (size_t i = 0; i < 12; i++)
		syms[i] = function(1, 0x1000 + i);
	syms[0] = (Elf64_Sym){ 0 };
	syms[1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
	syms[2].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
	syms[3].st_info = ELF64_ST_INFO(STB_WEAK, STT_GNU_IFUNC);
	syms[4].st_shndx = SHN_UNDEF;
	syms[5].st_shndx = SHN_ABS;
	syms[6].st_shndx = SHN_XINDEX;
	syms[7].st_name = 0;
	syms[8].st_name = 4; /* its end */
	syms[9].st_name = sizeof(strings) - 1;
	syms[10].st_name = UINT32_MAX;
	syms[11].st_name = 6;
	read_table(syms, 12, strings, sizeof(strings) - 1);
	ck_assert_uint_eq(table.len, 3);
	ck_assert_uint_eq(table.left_out, 0);
	ck_assert_uint_eq(table.symbols[0].offset, 0x1003);
	ck_assert_uint_eq(table.symbols[0].info, ELF64_ST_INFO(STB_WEAK, STT_GNU_IFUNC));
	ck_assert_uint_eq(table.symbols[0].bytes, 8);
	ck_assert_str_eq(table.symbols[0].name, "one");
	ck_assert_uint_eq(table.symbols[1].offset, 0x1006);
	ck_assert_uint_eq(table.symbols[2].offset, 0x100b);
	ck_assert_str_eq(table.symbols[2].name, "wo");
}
END_TEST

START_TEST(none)
{
	struct mt_module_symbols piece;

	read_table(NULL, 0, "", 0);
	ck_assert_uint_eq(table.len, 0);
	ck_assert_uint_eq(mt_symbol_table_piece(&table, 0, &piece), 0);
	ck_assert_uint_eq(piece.len, 0);
}
END_TEST

/* Reads n functions whose names are so long; returns in how many pieces they come. */
static size_t pieces_of(size_t n, size_t name_len)
{
	Elf64_Sym *syms = calloc(n, sizeof(*syms));
	char *strings = calloc(1, n * (name_len + 1));
	struct mt_module_symbols piece;
	size_t pieces = 0, at = 0;

	ck_assert(syms && strings);
	for (size_t i = 0; i < n; i++) {
		memset(strings + i * (name_len + 1), 'x', name_len);
		syms[i] = function((uint32_t)(i * (name_len + 1)), i);
	}
	read_table(syms, n, strings, n * (name_len + 1) - 1);
	ck_assert_uint_eq(table.len + table.left_out, n);
	while (at < table.len) {
		size_t bytes = 0;

		ck_assert_uint_gt(mt_symbol_table_piece(&table, at, &piece), 0);
		ck_assert_uint_le(piece.len, MT_SYMBOLS_LEN);
		ck_assert_uint_eq(piece.left_out, table.left_out);
		for (uint32_t i = 0; i < piece.len; i++) {
			if (piece.symbols[i].offset != at + i)
				ck_abort_msg("symbol %zu is another", at + i);
			bytes += strlen(piece.symbols[i].name) + 1;
		}
		ck_assert_uint_le(bytes, MT_SYMBOL_TABLE_PIECE_BYTES);
		at += piece.len;
		pieces++;
	}
	free(syms);
	free(strings);
	return pieces;
}

START_TEST(pieces)
{
	ck_assert_uint_eq(pieces_of(2 * MT_SYMBOLS_LEN + 1, 7), 3);
	ck_assert_uint_eq(table.left_out, 0);
	teardown();
	/* Two names to a piece. */
	ck_assert_uint_eq(pieces_of(10, MT_SYMBOL_TABLE_PIECE_BYTES / 2 - 1), 5);
	ck_assert_uint_eq(table.left_out, 0);
}
END_TEST

START_TEST(too_many)
{
	pieces_of(MT_SYMBOL_TABLE_LEN + 3, 4);
	ck_assert_uint_eq(table.left_out, 3);
	teardown();
	pieces_of(1200, 1023);
	ck_assert_uint_eq(table.len, MT_SYMBOL_TABLE_NAME_BYTES / 1024);
	teardown();
	ck_assert_uint_eq(pieces_of(2, MT_SYMBOL_TABLE_PIECE_BYTES - 1), 2);
	ck_assert_uint_eq(table.left_out, 0);
	teardown();
	ck_assert_uint_eq(pieces_of(2, MT_SYMBOL_TABLE_PIECE_BYTES), 0);
	ck_assert_uint_eq(table.left_out, 2);
}
END_TEST

/* All of a million symbols have the same long name: looking at each would take a while. */
START_TEST(overlapping_names)
{
	size_t n = 1000000, len = 16u << 20;
	Elf64_Sym *syms = calloc(n, sizeof(*syms));
	char *strings = malloc(len + 1);

	ck_assert(syms && strings);
	memset(strings, 'x', len);
	strings[len] = '\0';
	for (size_t i = 0; i < n; i++)
		syms[i] = function((uint32_t)(i ? i : len - 1), i);
	read_table(syms, n, strings, len);
	ck_assert_uint_eq(table.len, 1);
	ck_assert_uint_eq(table.left_out, n - 1);
	free(syms);
	free(strings);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbol_table");
	TCase *tcase = tcase_create("symbol_table");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, functions_only);
	tcase_add_test(tcase, none);
	tcase_add_test(tcase, pieces);
	tcase_add_test(tcase, too_many);
	tcase_add_test(tcase, overlapping_names);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
