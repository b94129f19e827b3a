/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * usable_size_filled.c - all of malloc_usable_size() is written to, and is there after a
 * realloc(); the artifact has the sizes that were asked for
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"

#define FIRST_BYTES 30560
#define SIZES 16
#define GROWN_BYTES 61121
#define ALIGNED_BYTES 777
#define ROUNDS 300

static char *filled(char *block, size_t asked, int with)
{
	size_t usable = malloc_usable_size(block);

	if (usable < asked || usable > asked + 8192) {
		fprintf(stderr, "%zu bytes usable of %zu\n", usable, asked);
		exit(4);
	}
	return memset(block, with, usable);
}

static void expect(const char *block, size_t bytes, int with)
{
	for (size_t i = 0; i < bytes; i++)
		if (block[i] != (char)with) {
			fprintf(stderr, "byte %zu is %d, not %d\n", i, block[i], with);
			exit(5);
		}
}

int main(void)
{
	char *blocks[SIZES], *aligned;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SIZES; i++)
			blocks[i] = filled(malloc(FIRST_BYTES + i), FIRST_BYTES + i, i);
		for (int i = 0; i < SIZES; i++) {
			size_t usable = malloc_usable_size(blocks[i]);

			blocks[i] = ledger_block(realloc(blocks[i], GROWN_BYTES));
			expect(blocks[i] + 1, usable - 1, i);
			free(blocks[i]);
		}
		aligned = filled(memalign(1024, ALIGNED_BYTES), ALIGNED_BYTES, 1);
		free(aligned);
	}
	for (int i = 0; i < SIZES; i++) {
		ledger_took(NULL, NULL, FIRST_BYTES + i, ROUNDS);
		ledger_gave(FIRST_BYTES + i, ROUNDS);
	}
	ledger_took(NULL, NULL, GROWN_BYTES, (size_t)SIZES * ROUNDS);
	ledger_gave(GROWN_BYTES, (size_t)SIZES * ROUNDS);
	ledger_took(NULL, NULL, ALIGNED_BYTES, ROUNDS);
	ledger_gave(ALIGNED_BYTES, ROUNDS);
	ledger_print();
	return 0;
}
