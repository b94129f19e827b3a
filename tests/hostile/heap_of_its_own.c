/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * heap_of_its_own.c - the program's heap has the program's blocks and nothing else: its
 * figures grow by what was asked for, neighbours stay neighbours, mallopt(), malloc_info()
 * and malloc_trim() reach the allocator, the program break is where the heap ends
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30623
#define BLOCKS 1000
#define OVERHEAD_BYTES 32

static char *blocks[BLOCKS];

static int fail(const char *what, size_t value)
{
	fprintf(stderr, "%s: %zu\n", what, value);
	return 4;
}

int main(void)
{
	struct mallinfo2 before, after;
	size_t irregular = 0, grown, bytes;
	char *info = NULL;
	FILE *file;

	/* All from the heap, none given back to the kernel before it is told to. */
	if (!mallopt(M_MMAP_THRESHOLD, 1 << 20) || !mallopt(M_TRIM_THRESHOLD, 1 << 30))
		return 3;
	free(malloc(BLOCK_BYTES));
	before = mallinfo2();
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = ledger_block(malloc(BLOCK_BYTES));
	after = mallinfo2();
	ledger_took(NULL, NULL, BLOCK_BYTES, BLOCKS + 1);
	ledger_gave(BLOCK_BYTES, BLOCKS + 1);

	grown = after.uordblks - before.uordblks;
	if (grown < (size_t)BLOCKS * BLOCK_BYTES ||
	    grown > (size_t)BLOCKS * (BLOCK_BYTES + OVERHEAD_BYTES))
		return fail("the heap grew by", grown);
	if (after.hblks != before.hblks)
		return fail("mapped blocks", after.hblks);
	for (int i = 2; i < BLOCKS; i++)
		irregular += blocks[i] - blocks[i - 1] != blocks[1] - blocks[0];
	if (irregular > 4)
		return fail("irregular distances", irregular);
	if ((uintptr_t)sbrk(0) < (uintptr_t)blocks[BLOCKS - 1] ||
	    (uintptr_t)sbrk(0) - (uintptr_t)blocks[BLOCKS - 1] > (1 << 20))
		return fail("the break is off by", (char *)sbrk(0) - blocks[BLOCKS - 1]);

	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	if (mallinfo2().uordblks > before.uordblks)
		return fail("left in use", mallinfo2().uordblks - before.uordblks);
	if (!malloc_trim(0) || mallinfo2().arena > before.arena + (1 << 20))
		return fail("not given back", mallinfo2().arena);
	file = open_memstream(&info, &bytes);
	if (!file || malloc_info(0, file) || fclose(file) || !strstr(info, "</malloc>"))
		return fail("malloc_info() wrote", bytes);
	free(info);
	ledger_print();
	return 0;
}
