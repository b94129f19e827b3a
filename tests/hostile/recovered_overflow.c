/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recovered_overflow.c - stacks that overflow, most often within malloc(), and a handler of
 * SIGSEGV on a stack of its own that jumps out; in the main thread, whose limit is lowered
 * first, and in one with a guard page.  What is taken afterwards is recorded as ever.
 *
 * The blocks fit in the C library's cache of the thread, which takes no lock.  A call that
 * overflowed may or may not have been counted: "least" and "most" give the bounds.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 507
#define AFTER_BYTES 30503
#define MAIN_STACK_BYTES (512 * 1024)
#define THREAD_STACK_BYTES (128 * 1024)
#define NEAR_BYTES (12 * 1024)
#define OVERFLOWS 30

static __thread sigjmp_buf out;
static __thread uint64_t stack_low;
static __thread volatile unsigned overflows;
static volatile unsigned long begun, returned, gave_begun, gave_returned, after;

static void on_overflow(int signal)
{
	overflows = overflows + 1;
	siglongjmp(out, 1);
}

/* Takes a block at each level that is near the end of the stack. */
LEDGER_SITE static int sink(unsigned pad, int depth)
{
	volatile char *frame = alloca(pad);

	frame[0] = (char)depth;
	if (depth < 0)
		return 0;
	if ((uint64_t)(uintptr_t)frame < stack_low + NEAR_BYTES) {
		void *block;

		begun = begun + 1;
		block = malloc(BLOCK_BYTES);
		returned = returned + 1;
		gave_begun = gave_begun + 1;
		free(block);
		gave_returned = gave_returned + 1;
	}
	return sink(pad, depth + 1) + frame[0];
}

LEDGER_SITE static void take_after(void)
{
	free(ledger_block(malloc(AFTER_BYTES)));
	after = after + 1;
}

static void overflow_often(uint64_t low)
{
	stack_t stack = { .ss_size = 64 * 1024 };

	stack_low = low;
	stack.ss_sp = ledger_block(malloc(stack.ss_size));
	if (sigaltstack(&stack, NULL))
		abort();
	for (volatile unsigned i = 0; i < OVERFLOWS; i = i + 1) {
		if (!sigsetjmp(out, 1))
			sink(24 + 8 * i, 0);
		take_after();
	}
	if (overflows != OVERFLOWS) {
		fprintf(stderr, "%u overflows were handled, not %d\n", overflows, OVERFLOWS);
		exit(4);
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
}

static void *work(void *unused)
{
	char here;

	overflow_often((uint64_t)(uintptr_t)&here - THREAD_STACK_BYTES + 8192);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };
	struct rlimit limit = { MAIN_STACK_BYTES, MAIN_STACK_BYTES };
	pthread_attr_t attr;
	pthread_t thread;
	char here;

	if (setrlimit(RLIMIT_STACK, &limit) || sigaction(SIGSEGV, &action, NULL) ||
	    sigaction(SIGBUS, &action, NULL))
		return 2;
	overflow_often((uint64_t)(uintptr_t)&here - MAIN_STACK_BYTES + 8192);
	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES) ||
	    pthread_create(&thread, &attr, work, NULL))
		return 3;
	pthread_join(thread, NULL);
	dprintf(STDOUT_FILENO,
		"least size %d allocations %lu frees %lu\nmost size %d allocations %lu frees %lu\n"
		"size %d allocations %lu frees %lu\n",
		BLOCK_BYTES, returned, gave_returned, BLOCK_BYTES, begun, gave_begun, AFTER_BYTES,
		after, after);
	return 0;
}
