/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_text.c - what is read of options and of the environment: sizes, faults, the address
 */
#include <errno.h>
#include <string.h>

#include "collector/faults.h"
#include "collector/size.h"
#include "preload/address.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (1ULL << 40)

static void read_size(const char *text)
{
	static const uint64_t maxima[] = { 0, 1, UINT32_MAX, SIZE_MAX_BYTES, UINT64_MAX };
	uint64_t least = 0;

	for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
		uint64_t bytes = 7;
		int r = mt_size_parse(text, maxima[i], &bytes);

		fuzz_must(r == 0 || r == -EINVAL || r == -ERANGE);
		fuzz_must(r == 0 ? bytes <= maxima[i] : bytes == 7);
		/* One that was taken is taken, and the same, wherever there is more room. */
		fuzz_must(!least || (r == 0 && bytes == least));
		least = r == 0 ? bytes : 0;
	}
}

static void read_address(const char *text)
{
	struct mt_address address;
	size_t len;

	memset(&address, 0xee, sizeof(address));
	if (!mt_address_parse(&address, text)) {
		fuzz_must(address.cookie == 0xeeeeeeeeeeeeeeee &&
			  address.name == 0xeeeeeeeeeeeeeeee && address.path[0] == (char)0xee);
		return;
	}
	fuzz_must(text[16] == ':' && text[33] == ':');
	fuzz_must(memchr(address.path, 0, sizeof(address.path)) != NULL);
	len = strlen(text + 34);
	fuzz_must(!strcmp(address.path, len < sizeof(address.path) ? text + 34 : ""));
}

static void read_faults(const char *text)
{
	char problem[MT_FAULTS_PROBLEM];
	struct mt_faults *faults;
	int r;

	memset(problem, 'x', sizeof(problem));
	r = mt_faults_new(text, problem, &faults);
	fuzz_must(r == 0 || (r == -EINVAL && memchr(problem, 0, sizeof(problem))));
	if (r == 0)
		mt_faults_free(faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);

	fuzz_must(text != NULL);
	if (len)
		memcpy(text, bytes, len);
	text[len] = '\0';
	read_faults(text);
	read_size(text);
	read_address(text);
	free(text);
	return 0;
}

void fuzz_corpus(void)
{
	static const char *const good[] = {
		"",
		"0",
		"8192",
		"8k",
		"8K",
		"8KB",
		"1MiB",
		"3G",
		"16GiB",
		"18446744073709551615",
		"18446744073709551616",
		"17179869184G",
		"0123456789abcdef:fedcba9876543210:/tmp/memtrack-abcdef/socket",
		"drop:1,swap/7,corrupt-head:999999999999999999",
		"duplicate:0,",
		"ffffffffffffffff:ffffffffffffffff:",
		"0000000000000000:0000000000000000:x",
		"0000000000000000:/tmp/memtrack-abcdef/socket",
	};
	char path[256] = "0123456789abcdef:fedcba9876543210:/";
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memcpy(path + len, good[i], strlen(good[i]));
		fuzz_try_around((uint8_t *)path + len, strlen(good[i]), 1);
	}
	memset(path + len, 'x', sizeof(path) - len);
	for (size_t i = len; i < sizeof(path); i++)
		fuzz_try((const uint8_t *)path, i);
}
