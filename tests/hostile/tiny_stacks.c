/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tiny_stacks.c - malloc() and free() called on stacks of two pages between pages that can
 * not be read, with all numbers of words between the caller and the stack's end: windows of
 * no group, of part of one, of several.  On anonymous memory; on a file's, behind which the
 * file ends; on shared memory, whose pages are gone each time; on memory that grows down.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define PAGE_BYTES 4096
#define STACK_BYTES (2 * PAGE_BYTES)
#define BLOCK_BYTES 30517
#define MOST_BYTES 1100

void *call_on_stack(void *top, void *(*function)(size_t), size_t argument);

static void *map(size_t bytes, int protection, int flags, int fd)
{
	void *at = mmap(NULL, bytes, protection, flags, fd, 0);

	if (at == MAP_FAILED)
		exit(3);
	return at;
}

static char *anonymous_stack(void)
{
	char *at = map(STACK_BYTES + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (mprotect(at + PAGE_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE))
		exit(3);
	return at + PAGE_BYTES + STACK_BYTES;
}

/* Who reads behind it gets SIGBUS. */
static char *file_stack(void)
{
	FILE *file = tmpfile();
	char *at;

	if (!file || ftruncate(fileno(file), STACK_BYTES))
		exit(3);
	at = map(2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file));
	fclose(file);
	return at + STACK_BYTES;
}

static char *shared_stack(void)
{
	return (char *)map(STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1) +
	       STACK_BYTES;
}

/* The kernel wants more room below it than there is stack. */
static char *growing_stack(void)
{
	char *at = map(4 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	at += 2 << 20;
	if (munmap(at - (2 << 20), 2 << 20) ||
	    mmap(at - PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(3);
	return at;
}

static const struct {
	const char *name;
	char *(*map)(void);
	int advice;
} kinds[] = {
	{ "anonymous", anonymous_stack, MADV_DONTNEED },
	{ "file", file_stack, MADV_DONTNEED },
	{ "shared", shared_stack, 21 /* MADV_PAGEOUT */ },
	{ "growing", growing_stack, MADV_NORMAL },
};

static void *give(size_t block)
{
	free((void *)block);
	return NULL;
}

static void use(char *end, int advice)
{
	for (size_t above = 16; above < MOST_BYTES; above += above < 600 ? 16 : 112) {
		char *top = end - above, *block;

		/* Kernels and file systems may not page out; the stack is as good then. */
		madvise(end - STACK_BYTES, STACK_BYTES, advice);
		if (above > 16)
			memset(top, 0, above);
		block = call_on_stack(top, malloc, BLOCK_BYTES);
		memset(ledger_block(block), 1, BLOCK_BYTES);
		ledger_took(NULL, NULL, BLOCK_BYTES, 1);
		call_on_stack(top, give, (size_t)block);
		ledger_gave(BLOCK_BYTES, 1);
		for (size_t i = 0; i < above; i++)
			if (above > 16 && top[i]) {
				fprintf(stderr, "%zu bytes above were written to\n", i);
				exit(4);
			}
	}
}

static void *work(void *unused)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		use(kinds[i].map(), kinds[i].advice);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	work(NULL);
	if (pthread_create(&thread, NULL, work, NULL))
		return 3;
	pthread_join(thread, NULL);
	ledger_print();
	return 0;
}
