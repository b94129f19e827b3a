/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * first_together.c - children of fork whose first allocations are those of several threads at
 * once: the threads' stacks are left from the parent, so that to start them takes no memory
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BLOCK_BYTES 20611
#define CHILDREN 400
#define THREADS 4
#define BLOCKS 5

static int waiting;

LEDGER_SITE static void *take_together(void *unused)
{
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) > 0)
		;
	for (int i = 0; i < BLOCKS; i++)
		free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_END, BLOCK_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS);
	return unused;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	waiting = THREADS;
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_create(&threads[i], NULL, take_together, NULL));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_join(threads[i], NULL));
}

int main(void)
{
	run_threads();
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		demand(child >= 0);
		if (child == 0) {
			run_threads();
			_exit(0);
		}
		demand(waitpid(child, &status, 0) == child && status == 0);
	}
	ledger_print();
	return 0;
}
