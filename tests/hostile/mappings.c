/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mappings.c - mmap(), munmap(), mremap() and sbrk() at their edges, between allocations:
 * memory comes, moves and goes as without a profiler, and blocks are counted as ever
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define PAGE 4096UL
#define BLOCK_BYTES 30631
#define MAPPED_BYTES 400639

static void expect(int condition, int line)
{
	if (condition)
		return;
	fprintf(stderr, "line %d: errno %d\n", line, errno);
	exit(4);
}

#define EXPECT(condition) expect(condition, __LINE__)

static char *map(void *at, size_t bytes, int protection, int flags)
{
	char *got = mmap(at, bytes, protection, flags | MAP_ANONYMOUS, -1, 0);

	EXPECT(got != MAP_FAILED);
	return got;
}

LEDGER_SITE static void take_between(void)
{
	/* One of the heap, one that is a mapping. */
	free(ledger_block(malloc(BLOCK_BYTES)));
	free(ledger_block(malloc(MAPPED_BYTES)));
	ledger_took(__func__, "main", BLOCK_BYTES, 1);
	ledger_took(__func__, "main", MAPPED_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
	ledger_gave(MAPPED_BYTES, 1);
}

static void split_and_replace(void)
{
	char *pages = map(NULL, 10 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char *room = map(NULL, 200 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);

	EXPECT(!munmap(pages + 2 * PAGE, 5 * PAGE) && !munmap(pages + 8 * PAGE, 1));
	take_between();
	map(room + 50 * PAGE, 100 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED);
	EXPECT(munmap(pages + 1, PAGE) && errno == EINVAL);
	EXPECT(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	take_between();
	EXPECT(!munmap(pages, 10 * PAGE) && !munmap(room, 200 * PAGE));
}

static void move_and_double(void)
{
	char *moved = map(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char *shared = map(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED), *twin;

	moved[0] = 7;
	moved = mremap(moved, 4 * PAGE, 400 * PAGE, MREMAP_MAYMOVE);
	EXPECT(moved != MAP_FAILED && moved[0] == 7);
	twin = mremap(shared, 0, 2 * PAGE, MREMAP_MAYMOVE);
	EXPECT(twin != MAP_FAILED);
	take_between();
	shared[5] = 6;
	EXPECT(twin[5] == 6);
	EXPECT(!munmap(shared, 2 * PAGE) && !munmap(twin, 2 * PAGE) && !munmap(moved, 400 * PAGE));
}

/* The heap goes on behind memory that is not its own. */
static void move_break(void)
{
	char *old = sbrk(8 * PAGE);

	EXPECT(old != (void *)-1);
	memset(old, 1, 8 * PAGE);
	take_between();
	if (sbrk(0) == old + 8 * PAGE)
		EXPECT(sbrk(-(long)(8 * PAGE)) != (void *)-1);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		split_and_replace();
		move_and_double();
		move_break();
	}
	ledger_print();
	return 0;
}
