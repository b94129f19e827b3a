/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * allocator_in_use.c - is the allocator that serves this process the one that it was given?
 *
 * allocator_in_use NAME: a library of that name must be mapped, and the C library's own heap
 * must not grow by what is allocated here; without NAME, it must.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23071
#define MOVED_BYTES 23072
#define ALIGNED_BYTES 23073
#define ALIGNMENT 4096
#define BLOCKS 100

static int is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4400];
	int found = 0;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, name) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* Bytes that the C library has given out, by itself: allocators have functions of that name. */
static size_t in_c_library(void)
{
	void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct mallinfo2 (*info)(void) = NULL;
	void *found = library ? dlsym(library, "mallinfo2") : NULL;
	struct mallinfo2 sums;

	memcpy(&info, &found, sizeof(info));
	if (!info)
		exit(2);
	sums = info();
	return sums.uordblks + sums.hblkhd;
}

LEDGER_SITE static void *take_from_it(void)
{
	char *block = ledger_block(malloc(BLOCK_BYTES));

	memset(block, 'b', BLOCK_BYTES);
	return block;
}

LEDGER_SITE static void *move_in_it(void *block)
{
	char *moved = ledger_block(realloc(block, MOVED_BYTES));

	if (moved[0] && moved[BLOCK_BYTES - 1] != 'b')
		exit(3);
	return moved;
}

int main(int argc, char **argv)
{
	void *blocks[BLOCKS], *aligned[BLOCKS];
	size_t before, grown;

	if (argc > 1 && !is_mapped(argv[1])) {
		fprintf(stderr, "allocator_in_use: no %s here\n", argv[1]);
		return 4;
	}
	before = in_c_library();
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = move_in_it(take_from_it());
		aligned[i] = ledger_block(aligned_alloc(ALIGNMENT, ALIGNED_BYTES));
		if ((size_t)aligned[i] % ALIGNMENT || malloc_usable_size(blocks[i]) < MOVED_BYTES)
			return 5;
	}
	grown = in_c_library() - before;
	if ((grown > (size_t)BLOCKS * BLOCK_BYTES) != (argc < 2)) {
		fprintf(stderr, "allocator_in_use: the C library gave %zu bytes\n", grown);
		return 6;
	}
	for (int i = 0; i < BLOCKS; i++) {
		free(blocks[i]);
		free(aligned[i]);
	}
	ledger_took("take_from_it", "main", BLOCK_BYTES, BLOCKS);
	ledger_took("move_in_it", "main", MOVED_BYTES, BLOCKS);
	ledger_took(NULL, NULL, ALIGNED_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS);
	ledger_gave(MOVED_BYTES, BLOCKS);
	ledger_gave(ALIGNED_BYTES, BLOCKS);
	ledger_print();
	return 0;
}
