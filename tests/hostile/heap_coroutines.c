/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * heap_coroutines.c - coroutines whose stacks are blocks of the heap, static memory, and
 * part of a thread's own stack; they allocate, are resumed by other threads than those that
 * began them, and their stacks are freed and taken again
 */
#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "fixtures/ledger.h"

#define STACK_BYTES 20481 /* no multiple of anything */
#define BLOCK_BYTES 30511
#define COROUTINES 24
#define THREADS 3
#define ROUNDS 40

struct coroutine {
	pthread_mutex_t lock;
	ucontext_t body, caller;
	char *stack;
	unsigned long resumed;
};

static struct coroutine coroutines[COROUTINES];
static char static_stack[STACK_BYTES];

LEDGER_SITE static void take_on_coroutine(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_ANY, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

LEDGER_SITE static void run_coroutine(unsigned i)
{
	struct coroutine *self = &coroutines[i];

	for (;;) {
		take_on_coroutine();
		self->resumed++;
		swapcontext(&self->body, &self->caller);
	}
}

static void begin(struct coroutine *self, char *stack)
{
	if (getcontext(&self->body))
		abort();
	self->stack = stack;
	self->body.uc_stack.ss_sp = stack;
	self->body.uc_stack.ss_size = STACK_BYTES;
	makecontext(&self->body, (void (*)(void))(void *)run_coroutine, 1,
		    (unsigned)(self - coroutines));
}

static void renew(struct coroutine *self)
{
	memset(self->stack, 0xa5, STACK_BYTES);
	free(self->stack);
	ledger_gave(STACK_BYTES, 1);
	begin(self, ledger_block(malloc(STACK_BYTES)));
	ledger_took(NULL, NULL, STACK_BYTES, 1);
}

static void resume_all(struct coroutine *from, unsigned count, unsigned rounds)
{
	for (unsigned i = 0; i < rounds * count; i++) {
		struct coroutine *next = &from[i % count];

		pthread_mutex_lock(&next->lock);
		if (swapcontext(&next->caller, &next->body))
			abort();
		if (next->stack != static_stack && next->resumed % 32 == 31)
			renew(next);
		pthread_mutex_unlock(&next->lock);
	}
}

static struct coroutine own_coroutines[THREADS + 1];

/* A coroutine on the stack of the thread that runs it. */
LEDGER_SITE static void run_on_own(unsigned i)
{
	take_on_coroutine();
	swapcontext(&own_coroutines[i].body, &own_coroutines[i].caller);
}

static void *work(void *number)
{
	struct coroutine *own = &own_coroutines[(size_t)number];
	char *stack = alloca(STACK_BYTES);

	for (unsigned i = 0; i < ROUNDS; i++) {
		resume_all(coroutines, COROUTINES, 1);
		if (getcontext(&own->body))
			abort();
		own->body.uc_stack.ss_sp = stack;
		own->body.uc_stack.ss_size = STACK_BYTES;
		makecontext(&own->body, (void (*)(void))(void *)run_on_own, 1,
			    (unsigned)(size_t)number);
		if (swapcontext(&own->caller, &own->body))
			abort();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < COROUTINES; i++) {
		pthread_mutex_init(&coroutines[i].lock, NULL);
		if (i) {
			begin(&coroutines[i], ledger_block(malloc(STACK_BYTES)));
			ledger_took(NULL, NULL, STACK_BYTES, 1);
		} else {
			begin(&coroutines[i], static_stack);
		}
	}
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 3;
	work((void *)(size_t)THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ledger_print();
	return 0;
}
