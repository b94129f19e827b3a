/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * allocating_recursion.c - a block is taken at each level of a deep recursion and kept
 * until the level is left: no two stacks have the same place, each is cut
 *
 * In a thread with a large stack, and in the main thread, whose limit is raised while it
 * runs (allocating_recursion [LEVELS [FRAME_BYTES]]).
 */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "fixtures/ledger.h"

#define SHALLOW_BYTES 30491
#define BETWEEN_BYTES 30493
#define DEEP_BYTES 30497
#define SHALLOW_LEVELS 8
#define CUT_BYTES (66 * 1024)

static size_t frame_bytes;

LEDGER_SITE static void *take_shallow(void)
{
	void *block = ledger_block(malloc(SHALLOW_BYTES));

	ledger_took(__func__, "descend", SHALLOW_BYTES, 1);
	return block;
}

LEDGER_SITE static void *take_between(void)
{
	void *block = ledger_block(malloc(BETWEEN_BYTES));

	ledger_took(__func__, LEDGER_ANY, BETWEEN_BYTES, 1);
	return block;
}

LEDGER_SITE static void *take_deep(void)
{
	void *block = ledger_block(malloc(DEEP_BYTES));

	ledger_took(__func__, LEDGER_CUT, DEEP_BYTES, 1);
	return block;
}

LEDGER_SITE static void descend(size_t level, size_t levels, const char *top)
{
	volatile char *frame = alloca(frame_bytes);
	void *block;
	size_t size;

	frame[0] = (char)level;
	if (level < SHALLOW_LEVELS) {
		size = SHALLOW_BYTES;
		block = take_shallow();
	} else if (top - (const char *)frame < CUT_BYTES) {
		size = BETWEEN_BYTES;
		block = take_between();
	} else {
		size = DEEP_BYTES;
		block = take_deep();
	}
	if (level < levels)
		descend(level + 1, levels, top);
	if (frame[0] != (char)level) {
		fprintf(stderr, "level %zu was overwritten\n", level);
		exit(4);
	}
	free(block);
	ledger_gave(size, 1);
}

static void *work(void *levels)
{
	char top = 0;

	descend(0, (size_t)levels, &top);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t levels = ledger_number(argc > 1 ? argv[1] : NULL, 10000);
	size_t stack_bytes;
	struct rlimit limit;
	pthread_attr_t attr;
	pthread_t thread;

	frame_bytes = ledger_number(argc > 2 ? argv[2] : NULL, 64);
	stack_bytes = (levels * (frame_bytes + 256) + (1 << 20)) & ~4095UL;
	if (getrlimit(RLIMIT_STACK, &limit) || pthread_attr_init(&attr) ||
	    pthread_attr_setstacksize(&attr, stack_bytes))
		return 2;
	limit.rlim_cur = stack_bytes;
	if (setrlimit(RLIMIT_STACK, &limit) || pthread_create(&thread, &attr, work, (void *)levels))
		return 3;
	pthread_join(thread, NULL);
	work((void *)levels);
	ledger_print();
	return 0;
}
