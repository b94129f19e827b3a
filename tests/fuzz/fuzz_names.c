/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_names.c - no name of a symbol or a file costs much, or reaches the terminal as it is
 */
#include <stdio.h>
#include <string.h>

#include "report/demangle.h"
#include "report/json_writer.h"
#include "report/printable.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/printed.h"

static void print(const char *name)
{
	struct mt_json json;
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	fuzz_must(out != NULL);
	mt_printable_write(out, name);
	fuzz_must(fclose(out) == 0 && printed_is_text(text, len) && !strchr(text, '\n'));
	free(text);

	out = open_memstream(&text, &len);
	fuzz_must(out != NULL);
	mt_json_init(&json, out);
	mt_json_string(&json, NULL, name);
	fuzz_must(fclose(out) == 0 && printed_is_json(text, len));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *name = malloc(len + 1), *plain;

	fuzz_must(name != NULL);
	if (len)
		memcpy(name, bytes, len);
	name[len] = '\0';
	plain = mt_demangle(name);
	fuzz_must(plain != NULL);
	fuzz_must(strlen(plain) <= MT_DEMANGLE_RESULT_MAX || !strcmp(plain, name));
	print(plain);
	print(name);
	free(plain);
	free(name);
	return 0;
}

/* A pair of pairs of pairs: the result doubles with each. */
static void try_doubling(size_t levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[2048];
	int len = sprintf(name, "_Z1f4pairI1AS0_E");

	for (size_t i = 0; i < levels && i + 1 < sizeof(digits); i++)
		len += sprintf(name + len, "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
	fuzz_try((const uint8_t *)name, (size_t)len);
}

void fuzz_corpus(void)
{
	static const char *const names[] = {
		"",
		"main",
		"\xff\xfe\xc2\x80\xe2\x82\xac\xed\xa0\x80",
		"\x1b[2J\"\\\n",
		"_Znwm",
		"_ZN2ns5ThingIlE4growEiPKc",
		"_ZNSt6vectorIiSaIiEE5eraseEN9__gnu_cxx17__normal_iteratorIPKiS1_EES6_",
		"_ZZ4mainENKUlvE_clEv",
		"_Z1fIiEDTcl1gfp_EET_",
		"_ZN4core3fmt5write17h0123456789abcdefE",
		"_RNvC6_123foo3bar",
		"_RNvMNtCs1234_7mycrate3fooNtB2_3Bar3baz",
		"_RINvNtC3std3mem8align_ofjdE",
		"_RNvCu9bcher_xqa3foo",
		"_RNvC0u9bcher_xca3foo", /* a piece of no length */
	};
	char bytes[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		memcpy(bytes, names[i], len);
		fuzz_try_around((uint8_t *)bytes, len, 1);
		if (len)
			fuzz_try_mixed((const uint8_t *)bytes, len, 300);
	}
	for (size_t levels = 1; levels < 36; levels++)
		try_doubling(levels);
}
