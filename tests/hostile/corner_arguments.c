/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * corner_arguments.c - every function of the allocator with arguments at the edge of what
 * it takes, and each result and errno printed: they are as without a profiler
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30550
#define SMALLER_BYTES 30540

static volatile size_t half = SIZE_MAX / 2, no_power = 24, nothing;
static char text[8192];
static size_t used;

static void *show(const char *call, void *block)
{
	used += snprintf(text + used, sizeof(text) - used, "%s: %s, errno %d, 2^%d\n", call,
			 block ? "a block" : "none", errno,
			 block ? __builtin_ctzl((uintptr_t)block | 4096) : 0);
	errno = 0;
	return block;
}

#define SHOW(call) show(#call, call)

static void tell(const char *what, long value)
{
	used += snprintf(text + used, sizeof(text) - used, "%s: %ld\n", what, value);
}

static void took(size_t size)
{
	ledger_took(NULL, NULL, size, 1);
}

static void give(void *block, size_t size)
{
	free(block);
	ledger_gave(size, 1);
}

static int is_filled(const char *block, size_t bytes, char with)
{
	for (size_t i = 0; i < bytes; i++)
		if (block[i] != with)
			return 0;
	return 1;
}

static void try_plain(void)
{
	void *block = malloc(0);

	tell("malloc(0) has room", block && malloc_usable_size(block) > 0);
	took(0);
	give(block, 0);
	free(NULL);
	block = realloc(NULL, BLOCK_BYTES);
	took(BLOCK_BYTES);
	SHOW(realloc(block, nothing));
	ledger_gave(BLOCK_BYTES, 1);
	block = calloc(10, BLOCK_BYTES / 10);
	took(BLOCK_BYTES);
	tell("calloc() is clean", is_filled(block, BLOCK_BYTES, 0));
	give(block, BLOCK_BYTES);
	SHOW(calloc(half, 8));
	block = calloc(0, 5);
	took(0);
	give(block, 0);
	tell("malloc_usable_size(NULL)", malloc_usable_size(NULL));
}

/* The compiler, too, is to believe that the block is still there. */
static void *volatile kept;

static void try_resizing(void)
{
	char *block = reallocarray(NULL, 10, BLOCK_BYTES / 10), *same;
	uintptr_t was;

	took(BLOCK_BYTES);
	memset(block, 9, BLOCK_BYTES);
	kept = block;
	SHOW(reallocarray(kept, half, 8));
	SHOW(realloc(kept, half));
	block = kept;
	tell("kept", is_filled(block, BLOCK_BYTES, 9));
	was = (uintptr_t)block;
	same = realloc(block, SMALLER_BYTES);
	ledger_gave(BLOCK_BYTES, 1);
	took(SMALLER_BYTES);
	tell("in place", (uintptr_t)same == was);
	same = realloc(same, 10 * BLOCK_BYTES);
	ledger_gave(SMALLER_BYTES, 1);
	took(10 * BLOCK_BYTES);
	tell("copied", is_filled(same, SMALLER_BYTES, 9));
	give(same, 10 * BLOCK_BYTES);
}

static void try_aligned(void)
{
	void *block = text;

	tell("posix_memalign(24)", posix_memalign(&block, 24, 8));
	tell("posix_memalign(2)", posix_memalign(&block, 2, 8));
	tell("posix_memalign(0)", posix_memalign(&block, 0, 8));
	tell("untouched", block == text);
	tell("posix_memalign(64)", posix_memalign(&block, 64, BLOCK_BYTES));
	took(BLOCK_BYTES);
	give(block, BLOCK_BYTES);
	tell("posix_memalign of nothing", posix_memalign(&block, 8, 0));
	took(0);
	give(block, 0);
	SHOW(memalign(half + 2, 100));
	SHOW(aligned_alloc(half, 100));
	give(memalign(no_power, BLOCK_BYTES), BLOCK_BYTES);
	took(BLOCK_BYTES);
	give(SHOW(memalign(1 << 20, BLOCK_BYTES)), BLOCK_BYTES);
	took(BLOCK_BYTES);
	give(SHOW(valloc(BLOCK_BYTES)), BLOCK_BYTES);
	took(BLOCK_BYTES);
	block = pvalloc(SMALLER_BYTES);
	tell("pvalloc() has whole pages", malloc_usable_size(block) >= 8 * 4096);
	took(SMALLER_BYTES);
	give(block, SMALLER_BYTES);
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		used = 0;
		errno = 0;
		try_plain();
		try_resizing();
		try_aligned();
		tell("malloc_trim()", malloc_trim(0) >= 0);
	}
	if (write(STDOUT_FILENO, text, used) != (ssize_t)used)
		return 3;
	ledger_print();
	return 0;
}
