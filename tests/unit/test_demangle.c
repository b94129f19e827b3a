/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_demangle.c - report/demangle.c: C++, both Rust schemes, and what is neither
 */
#include "report/demangle.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *mangled, *plain;
} names[] = {
	{ "_ZN2ns5ThingIlE4growEiPKc", "ns::Thing<long>::grow(int, char const*)" },
	{ "_Znwm", "operator new(unsigned long)" },
	{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
	{ "_RNvC6_123foo3bar", "123foo::bar" },
	{ "_RNvMNtCs1234_7mycrate3fooNtB2_3Bar3baz", "<mycrate::foo::Bar>::baz" },
	{ "main", "main" },
	{ "_start", "_start" },
	{ "_Z", "_Z" },
	{ "_ZN", "_ZN" },
	{ "_R", "_R" },
	{ "", "" },
	{ "\xff\xfe", "\xff\xfe" },
};

START_TEST(known_names)
{
	char *plain = mt_demangle(names[_i].mangled);

	ck_assert_str_eq(plain, names[_i].plain);
	free(plain);
}
END_TEST

/* _ZN<len>aaa...Ev: valid at any length. */
START_TEST(long_names_are_copied)
{
	static char name[MT_DEMANGLE_MAX + 100];
	int start = snprintf(name, sizeof(name), "_Z%d", MT_DEMANGLE_MAX);
	char *plain;

	memset(name + start, 'a', MT_DEMANGLE_MAX);
	strcpy(name + start + MT_DEMANGLE_MAX, "v");
	plain = mt_demangle(name);
	ck_assert_str_eq(plain, name);
	free(plain);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("demangle");
	TCase *tcase = tcase_create("demangle");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, known_names, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_test(tcase, long_names_are_copied);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
