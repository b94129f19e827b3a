/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wrapped.c - takes blocks by way of wrapping_malloc.c, which notes the size in front of each
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20027
#define GROWN_BYTES 20033
#define HEAD_BYTES 16
#define ROUNDS 100

LEDGER_SITE static char *take(void)
{
	return ledger_block(malloc(BYTES));
}

LEDGER_SITE static char *grow(char *block)
{
	return ledger_block(realloc(block, GROWN_BYTES));
}

int main(void)
{
	size_t noted;

	demand(dlsym(RTLD_DEFAULT, "wrapping_malloc_head_bytes"));
	demand(prctl(-1) == HEAD_BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		char *block = take();

		memcpy(&noted, block - HEAD_BYTES, sizeof(noted));
		demand(noted == BYTES);
		memset(block, i, BYTES);
		block = grow(block);
		demand(block[BYTES - 1] == (char)i);
		free(block);
	}
	ledger_took("take", "main", BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
	ledger_took("grow", "main", GROWN_BYTES, ROUNDS);
	ledger_gave(GROWN_BYTES, ROUNDS);
	ledger_print();
	return 0;
}
