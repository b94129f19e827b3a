/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_json_writer.c - report/json_writer.c and printable.c: any bytes in, valid text out
 */
#include "report/json_writer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "report/printable.h"

static char *text;
static size_t text_len;
static FILE *out;

static void setup(void)
{
	out = open_memstream(&text, &text_len);
	ck_assert_ptr_nonnull(out);
}

static void teardown(void)
{
	free(text);
}

static void check_text(const char *expected)
{
	fclose(out);
	ck_assert_str_eq(text, expected);
}

START_TEST(structure)
{
	struct mt_json json;

	mt_json_init(&json, out);
	mt_json_open(&json, NULL, '{');
	mt_json_number(&json, "a", 1);
	mt_json_open(&json, "none", '[');
	mt_json_close(&json);
	mt_json_open_flat(&json, "flat", '[');
	mt_json_open(&json, NULL, '{');
	mt_json_bool(&json, "yes", 1);
	mt_json_null(&json, "no");
	mt_json_close(&json);
	mt_json_bool(&json, NULL, 0);
	mt_json_close(&json);
	mt_json_open(&json, "deep", '{');
	mt_json_string(&json, "s", NULL);
	mt_json_close(&json);
	mt_json_close(&json);
	check_text("{\n  \"a\": 1,\n  \"none\": [],\n  \"flat\": [{\"yes\": true, \"no\": null}, "
		   "false],"
		   "\n  \"deep\": {\n    \"s\": null\n  }\n}\n");
}
END_TEST

START_TEST(numbers_are_exact)
{
	struct mt_json json;

	mt_json_init(&json, out);
	mt_json_open_flat(&json, NULL, '[');
	mt_json_number(&json, NULL, (1ULL << 53) + 1);
	mt_json_number(&json, NULL, UINT64_MAX);
	mt_json_close(&json);
	check_text("[9007199254740993, 18446744073709551615]\n");
}
END_TEST

/* in: bytes; json: between the quotes; plain: mt_printable_write(). */
static const struct {
	const char *in, *json, *plain;
} strings[] = {
	{ "", "", "" },
	{ "a/b;c", "a/b;c", "a/b;c" },
	{ "\"\\", "\\\"\\\\", "\"\\" },
	{ "\n\t\x1b[31m\x7f", "\\u000a\\u0009\\u001b[31m\\u007f", "\\x0a\\x09\\x1b[31m\\x7f" },
	{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	/* C1 control, then the first that is none. */
	{ "\xc2\x9b\xc2\xa0", "\\u009b\xc2\xa0", "\\xc2\\x9b\xc2\xa0" },
	/* Alone, cut, too long a form, surrogate, beyond the last. */
	{ "\xff"
	  "a\x80",
	  "\\\\xff"
	  "a\\\\x80",
	  "\\xff"
	  "a\\x80" },
	{ "\xe2\x82", "\\\\xe2\\\\x82", "\\xe2\\x82" },
	{ "\xf0\x9f\x98", "\\\\xf0\\\\x9f\\\\x98", "\\xf0\\x9f\\x98" },
	{ "\xc0\xaf", "\\\\xc0\\\\xaf", "\\xc0\\xaf" },
	{ "\xe0\x9f\xbf", "\\\\xe0\\\\x9f\\\\xbf", "\\xe0\\x9f\\xbf" },
	{ "\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80", "\\xed\\xa0\\x80" },
	{ "\xf4\x90\x80\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80", "\\xf4\\x90\\x80\\x80" },
	{ "\xf8\x88\x80\x80\x80", "\\\\xf8\\\\x88\\\\x80\\\\x80\\\\x80",
	  "\\xf8\\x88\\x80\\x80\\x80" },
	{ "\xc3\"", "\\\\xc3\\\"", "\\xc3\"" },
};

#define STRINGS (sizeof(strings) / sizeof(strings[0]))

START_TEST(any_bytes_in_json)
{
	char expected[128];
	struct mt_json json;

	mt_json_init(&json, out);
	mt_json_open_flat(&json, NULL, '[');
	mt_json_string(&json, NULL, strings[_i].in);
	mt_json_close(&json);
	snprintf(expected, sizeof(expected), "[\"%s\"]\n", strings[_i].json);
	check_text(expected);
}
END_TEST

START_TEST(any_bytes_on_a_terminal)
{
	mt_printable_write(out, strings[_i].in);
	check_text(strings[_i].plain);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json_writer");
	TCase *tcase = tcase_create("json_writer");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, structure);
	tcase_add_test(tcase, numbers_are_exact);
	tcase_add_loop_test(tcase, any_bytes_in_json, 0, STRINGS);
	tcase_add_loop_test(tcase, any_bytes_on_a_terminal, 0, STRINGS);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
