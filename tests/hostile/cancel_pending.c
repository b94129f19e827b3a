/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cancel_pending.c - malloc is no cancellation point: a thread with a cancellation pending
 * allocates until it asks for it; others are cancelled in a wait, and clean up
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define PENDING_BYTES 20149
#define CLEANUP_BYTES 20161
#define ROUNDS 3000
#define THREADS 20

static sem_t waiting, cancelled;
static int done;

LEDGER_SITE static void take_pending(void)
{
	free(ledger_block(malloc(PENDING_BYTES)));
}

LEDGER_SITE static void clean_up(void *block)
{
	free(block);
	free(ledger_block(malloc(CLEANUP_BYTES)));
	__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
}

static void *pending(void *unused)
{
	int type;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&waiting);
	sem_wait(&cancelled);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &type);
	for (int i = 0; i < ROUNDS; i++)
		take_pending();
	ledger_took("take_pending", "pending", PENDING_BYTES, ROUNDS);
	ledger_gave(PENDING_BYTES, ROUNDS);
	pthread_testcancel();
	return unused;
}

static void *sleeper(void *unused)
{
	pthread_cleanup_push(clean_up, ledger_block(malloc(64)));
	sem_post(&waiting);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return unused;
}

static void cancel(void *(*run)(void *))
{
	pthread_t thread;
	void *result;

	demand(!pthread_create(&thread, NULL, run, NULL));
	sem_wait(&waiting);
	demand(!pthread_cancel(thread));
	sem_post(&cancelled);
	demand(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
}

int main(void)
{
	cancel(pending);
	for (int i = 0; i < THREADS; i++)
		cancel(sleeper);
	demand(done == THREADS);
	ledger_took("clean_up", LEDGER_ANY, CLEANUP_BYTES, THREADS);
	ledger_gave(CLEANUP_BYTES, THREADS);
	ledger_print();
	return 0;
}
