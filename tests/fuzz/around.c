/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * around.c - what is next to a good input: see fuzz.h
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"

uint64_t fuzz_random(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 24;
}

void fuzz_try_around(uint8_t *bytes, size_t len, size_t step)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff, 0x12 };

	for (size_t i = 0; i < len; i += step)
		fuzz_try(bytes, i);
	fuzz_try(bytes, len);
	for (size_t i = 0; i < len; i += step) {
		for (size_t j = 0; j < sizeof(masks); j++) {
			bytes[i] ^= masks[j];
			fuzz_try(bytes, len);
			bytes[i] ^= masks[j];
		}
	}
}

static void mix(uint8_t *copy, size_t len, uint64_t *state)
{
	for (uint64_t i = fuzz_random(state) % 8; i < 8; i++) {
		size_t from = fuzz_random(state) % len, to = fuzz_random(state) % len;

		if (fuzz_random(state) % 8)
			copy[to] = (uint8_t)fuzz_random(state);
		else
			memmove(copy + to, copy + from, len - (from > to ? from : to));
	}
}

void fuzz_try_mixed(const uint8_t *bytes, size_t len, unsigned int count)
{
	uint8_t *copy = malloc(len);
	uint64_t state = 1;

	fuzz_must(copy != NULL);
	for (unsigned int i = 0; i < count; i++) {
		memcpy(copy, bytes, len);
		mix(copy, len, &state);
		fuzz_try(copy, len);
	}
	free(copy);
}
