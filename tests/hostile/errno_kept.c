/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * errno_kept.c - errno is 0 in constructors, when main() begins and in a new thread; calls
 * that succeed leave it, whatever it is; calls that fail set it to ENOMEM, but those of
 * posix_memalign(), which return their error; a refused block is none
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30547
#define ROUNDS 1000
#define MARK 4711

static int at_constructor;
static volatile size_t too_much = PTRDIFF_MAX;

__attribute__((constructor(102))) static void note_errno(void)
{
	at_constructor = errno;
}

static void expect(int condition, int line)
{
	if (condition)
		return;
	fprintf(stderr, "line %d: errno %d\n", line, errno);
	exit(4);
}

#define EXPECT(condition) expect(condition, __LINE__)
#define LEAVES(call)                   \
	do {                           \
		errno = MARK;          \
		call;                  \
		EXPECT(errno == MARK); \
	} while (0)
#define REFUSED(call)                    \
	do {                             \
		errno = 0;               \
		EXPECT(!(call));         \
		EXPECT(errno == ENOMEM); \
	} while (0)

static void succeed(void)
{
	void *block, *other = NULL;

	LEAVES(block = malloc(BLOCK_BYTES));
	LEAVES(block = realloc(block, BLOCK_BYTES));
	LEAVES(other = calloc(1, BLOCK_BYTES));
	LEAVES(free(block));
	LEAVES(free(other));
	LEAVES(free(NULL));
	LEAVES(block = aligned_alloc(64, BLOCK_BYTES));
	LEAVES(malloc_usable_size(block));
	LEAVES(free(block));
	LEAVES(posix_memalign(&other, 256, BLOCK_BYTES));
	LEAVES(free(other));
	ledger_took(NULL, NULL, BLOCK_BYTES, 5);
	ledger_gave(BLOCK_BYTES, 5);
}

static void fail(void)
{
	void *block = ledger_block(malloc(BLOCK_BYTES)), *other = block;

	REFUSED(malloc(too_much));
	REFUSED(calloc(too_much, 3));
	REFUSED(calloc(1, too_much));
	REFUSED(realloc(block, too_much));
	REFUSED(reallocarray(block, too_much, 3));
	REFUSED(memalign(64, too_much));
	REFUSED(valloc(too_much));
	LEAVES(EXPECT(posix_memalign(&other, 3, 10) == EINVAL));
	LEAVES(EXPECT(posix_memalign(&other, 0, 10) == EINVAL));
	EXPECT(posix_memalign(&other, 64, too_much) == ENOMEM && other == block);
	free(block);
	ledger_took(NULL, NULL, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

static void *work(void *unused)
{
	EXPECT(!errno);
	free(malloc(BLOCK_BYTES));
	EXPECT(!errno);
	ledger_took(NULL, NULL, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
	for (int i = 0; i < ROUNDS; i++)
		succeed();
	fail();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	EXPECT(!errno && !at_constructor);
	if (pthread_create(&thread, NULL, work, NULL))
		return 3;
	for (int i = 0; i < ROUNDS; i++)
		succeed();
	fail();
	pthread_join(thread, NULL);
	ledger_print();
	return 0;
}
