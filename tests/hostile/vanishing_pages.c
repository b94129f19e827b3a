/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vanishing_pages.c - allocations on a stack of shared memory, whose pages other threads make
 * the kernel forget all the while: what is there at one access is not present at the next
 */
#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fixtures/ledger.h"

#define STACK_BYTES (256 * 1024)
#define BLOCK_BYTES 30529
#define ROUNDS 3000
#define FORGETTERS 3

static char *stack;
static int done;

/* The memory keeps what was written: who touches it finds it again. */
static void *forget(void *unused)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		madvise(stack, STACK_BYTES, MADV_DONTNEED);
	return unused;
}

/* A window as long as any budget, and no two alike: to copy it takes a while. */
LEDGER_SITE static void take_and_give(size_t round)
{
	size_t bytes = 65536 + round % 61 * 16;
	volatile char *frame = alloca(bytes);

	for (size_t i = 0; i < bytes; i += 8)
		frame[i] = (char)(round + i / 8);
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_CUT, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

static void *work(void *unused)
{
	for (size_t round = 0; round < ROUNDS; round++)
		take_and_give(round);
	return unused;
}

int main(void)
{
	pthread_t worker, forgetters[FORGETTERS];
	pthread_attr_t attr;

	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, stack, STACK_BYTES) ||
	    pthread_create(&worker, &attr, work, NULL))
		return 3;
	pthread_attr_destroy(&attr);
	for (int i = 0; i < FORGETTERS; i++)
		if (pthread_create(&forgetters[i], NULL, forget, NULL))
			return 3;
	pthread_join(worker, NULL);
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < FORGETTERS; i++)
		pthread_join(forgetters[i], NULL);
	ledger_print();
	return 0;
}
