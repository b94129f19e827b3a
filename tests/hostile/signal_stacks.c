/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * signal_stacks.c - allocations in handlers on signal stacks: small ones whose neighbours
 * can not be read, one that lies in the stack that it interrupts, one that is another
 * thread's stack space, one left by siglongjmp() while the next signal comes, and signals
 * that arrive on a coroutine
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "fixtures/ledger.h"

#define PAGE_BYTES 4096
#define BLOCK_BYTES 30541
#define ROUNDS 60

static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t jumps;
static size_t small_bytes;

LEDGER_SITE static void take_in_handler(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_ANY, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

static void on_signal(int signal)
{
	stack_t now;

	take_in_handler();
	if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_ONSTACK))
		exit(4);
	if (jumps)
		siglongjmp(out, 1);
}

static void raise_on(char *stack, size_t bytes)
{
	stack_t given = { .ss_sp = stack, .ss_size = bytes }, found;

	if (sigaltstack(&given, NULL))
		abort();
	raise(SIGUSR1);
	if (sigaltstack(NULL, &found) || found.ss_sp != stack || found.ss_size != bytes ||
	    found.ss_flags)
		exit(5);
	jumps = 1;
	if (!sigsetjmp(out, 1))
		raise(SIGUSR1);
	jumps = 0;
	raise(SIGUSR1);
}

static char *guarded(size_t bytes)
{
	char *at = mmap(NULL, bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED || mprotect(at + PAGE_BYTES, bytes, PROT_READ | PROT_WRITE))
		abort();
	return at + PAGE_BYTES;
}

static ucontext_t caller, body;

static void on_coroutine(void)
{
	raise(SIGUSR1);
	swapcontext(&body, &caller);
}

/* The handler's stack is known, that of the coroutine which it interrupts is not. */
static void raise_on_coroutine(char *signal_stack)
{
	stack_t given = { .ss_sp = signal_stack, .ss_size = small_bytes };

	if (sigaltstack(&given, NULL) || getcontext(&body))
		abort();
	body.uc_stack.ss_size = 32 * 1024;
	body.uc_stack.ss_sp = guarded(body.uc_stack.ss_size);
	makecontext(&body, on_coroutine, 0);
	if (swapcontext(&caller, &body))
		abort();
	munmap((char *)body.uc_stack.ss_sp - PAGE_BYTES, 32 * 1024 + 2 * PAGE_BYTES);
}

static void *work(void *is_main)
{
	stack_t none = { .ss_flags = SS_DISABLE };
	char *small = guarded(small_bytes), *own = alloca(small_bytes);
	char *block = ledger_block(malloc(small_bytes));

	for (int i = 0; i < ROUNDS; i++) {
		raise_on(small, small_bytes);
		raise_on(own, small_bytes);
		raise_on(block, small_bytes);
		if (is_main)
			raise_on_coroutine(small);
		if (sigaltstack(&none, NULL))
			abort();
	}
	free(block);
	munmap(small - PAGE_BYTES, small_bytes + 2 * PAGE_BYTES);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_t thread;

	/* The least that the kernel takes, whole pages, and some for the handler. */
	small_bytes = (getauxval(AT_MINSIGSTKSZ) + 2 * PAGE_BYTES) & ~(PAGE_BYTES - 1UL);
	if (sigaction(SIGUSR1, &action, NULL) || pthread_create(&thread, NULL, work, NULL))
		return 3;
	work(&caller);
	pthread_join(thread, NULL);
	ledger_print();
	return 0;
}
