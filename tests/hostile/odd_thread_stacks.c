/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * odd_thread_stacks.c - threads on stacks of 16 KiB that the program provides: the page
 * behind can not be read, the stack begins and ends within a page, lies in the heap, in
 * another thread's stack, in a file that ends with it
 */
#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define PAGE_BYTES 4096
#define STACK_BYTES ((size_t)PTHREAD_STACK_MIN)
#define BLOCK_BYTES 30531
#define ROUNDS 20

LEDGER_SITE static void take_on_odd_stack(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, "descend", BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

LEDGER_SITE static void descend(int depth)
{
	take_on_odd_stack();
	if (depth)
		descend(depth - 1);
	__asm__ volatile("");
}

static void *work(void *unused)
{
	descend(8);
	return NULL;
}

static void run_on(char *stack, size_t bytes)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) || pthread_attr_setstack(&attr, stack, bytes) ||
	    pthread_create(&thread, &attr, work, NULL))
		abort();
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

static char *map(size_t bytes, int flags, int fd)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

static void run_between_guards(void)
{
	char *at = map(STACK_BYTES + 2 * PAGE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (mprotect(at, PAGE_BYTES, PROT_NONE) ||
	    mprotect(at + PAGE_BYTES + STACK_BYTES, PAGE_BYTES, PROT_NONE))
		abort();
	run_on(at + PAGE_BYTES, STACK_BYTES);
	munmap(at, STACK_BYTES + 2 * PAGE_BYTES);
}

static void run_at_end_of_file(void)
{
	FILE *file = tmpfile();
	char *at;

	if (!file || ftruncate(fileno(file), STACK_BYTES))
		abort();
	at = map(2 * STACK_BYTES, MAP_SHARED, fileno(file));
	run_on(at, STACK_BYTES);
	munmap(at, 2 * STACK_BYTES);
	fclose(file);
}

static void run_in_heap(size_t offset)
{
	char *at = ledger_block(malloc(STACK_BYTES + 777));

	ledger_took(NULL, NULL, STACK_BYTES + 777, 1);
	memset(at, 0xa5, STACK_BYTES + 777);
	run_on(at + offset, STACK_BYTES + 16);
	free(at);
	ledger_gave(STACK_BYTES + 777, 1);
}

static void run_in_own_stack(void)
{
	char *at = alloca(STACK_BYTES + 64);

	run_on(at, STACK_BYTES + 64);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		run_between_guards();
		run_at_end_of_file();
		run_in_heap(16 * i);
		run_in_own_stack();
	}
	ledger_print();
	return 0;
}
