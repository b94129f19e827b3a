/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * crowds.c - processes whose threads, two thousand each, all allocate for the first time
 * at once, and live until all have
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BLOCK_BYTES 20231
#define PROCESSES 2
#define THREADS 2000

static pthread_barrier_t together;

LEDGER_SITE static void take_in_crowd(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_ANY, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

static void *join_in(void *unused)
{
	pthread_barrier_wait(&together);
	take_in_crowd();
	pthread_barrier_wait(&together);
	return unused;
}

static void be_crowd(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t attr;

	demand(!pthread_barrier_init(&together, NULL, THREADS));
	demand(!pthread_attr_init(&attr));
	demand(!pthread_attr_setstacksize(&attr, 4 * PTHREAD_STACK_MIN));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_create(&threads[i], &attr, join_in, NULL));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_join(threads[i], NULL));
}

int main(void)
{
	pid_t children[PROCESSES];
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		demand(children[i] >= 0);
		if (children[i] == 0) {
			be_crowd();
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++)
		demand(waitpid(children[i], &status, 0) == children[i] && status == 0);
	ledger_print();
	return 0;
}
