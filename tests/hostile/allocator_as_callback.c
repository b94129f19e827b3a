/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * allocator_as_callback.c - the allocator's functions themselves as what others call: a
 * thread's function, a signal's handler, a coroutine's body, a key's destructor, an exit
 * handler.  Between them and the end of the stack are a few words.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "fixtures/ledger.h"

#define THREAD_BYTES 30521
#define KEY_BYTES 30523
#define COROUTINE_BYTES 30529
#define STACK_BYTES (32 * 1024)
#define ROUNDS 30

static pthread_key_t key;

static void thread_allocates(void)
{
	void *block = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, (void *(*)(void *))(void *)malloc, (void *)THREAD_BYTES))
		abort();
	pthread_join(thread, &block);
	memset(ledger_block(block), 1, THREAD_BYTES);
	ledger_took(NULL, NULL, THREAD_BYTES, 1);
	if (pthread_create(&thread, NULL, (void *(*)(void *))(void *)free, block))
		abort();
	pthread_join(thread, NULL);
	ledger_gave(THREAD_BYTES, 1);
}

static void *set_key(void *block)
{
	return (void *)(long)pthread_setspecific(key, block);
}

static void key_frees(void)
{
	pthread_t thread;
	void *err;

	if (pthread_create(&thread, NULL, set_key, ledger_block(malloc(KEY_BYTES))))
		abort();
	ledger_took(NULL, NULL, KEY_BYTES, 1);
	pthread_join(thread, &err);
	if (err)
		abort();
	ledger_gave(KEY_BYTES, 1);
}

/* Its block has as many bytes as the signal's number, and is never freed. */
static void handler_allocates(int signal)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = (void (*)(int))(void *)malloc;
	if (sigaction(signal, &action, NULL) || raise(signal))
		abort();
	ledger_took(NULL, NULL, signal, 1);
}

static void coroutine_allocates(char *stack)
{
	ucontext_t here, body;

	if (getcontext(&body))
		abort();
	body.uc_stack.ss_sp = stack;
	body.uc_stack.ss_size = STACK_BYTES;
	body.uc_link = &here;
	makecontext(&body, (void (*)(void))(void *)malloc, 1, COROUTINE_BYTES);
	if (swapcontext(&here, &body))
		abort();
	ledger_took(NULL, NULL, COROUTINE_BYTES, 1);
}

int main(void)
{
	char *stack = ledger_block(malloc(STACK_BYTES));

	ledger_took(NULL, NULL, STACK_BYTES, 1);
	if (pthread_key_create(&key, free))
		return 2;
	for (int i = 0; i < ROUNDS; i++) {
		thread_allocates();
		key_frees();
		handler_allocates(SIGUSR1);
		coroutine_allocates(stack);
	}
	ledger_gave(STACK_BYTES, 1);
	ledger_print();
	free(stack);
	return 0;
}
