/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * many_at_once.c - more processes alive at a time than there are descriptors by default
 *
 * Each allocates, waits until all do, and allocates again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23111
#define PROCESSES 1100
#define BLOCKS 5

LEDGER_SITE static void *take_among_many(void)
{
	return ledger_block(malloc(BLOCK_BYTES));
}

static void allocate(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(take_among_many());
}

static pthread_barrier_t *make_barrier(void)
{
	pthread_barrier_t *barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	if (barrier == MAP_FAILED || pthread_barrierattr_init(&shared) ||
	    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) ||
	    pthread_barrier_init(barrier, &shared, PROCESSES))
		exit(2);
	return barrier;
}

int main(void)
{
	pthread_barrier_t *barrier = make_barrier();
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		pid_t child = fork();

		if (child < 0) {
			fprintf(stderr, "many_at_once: process %d: %s\n", i, strerror(errno));
			kill(0, SIGKILL);
		}
		if (child == 0) {
			allocate();
			pthread_barrier_wait(barrier);
			allocate();
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++)
		if (wait(&status) < 0 || status)
			return 3;
	ledger_took("take_among_many", "main", BLOCK_BYTES, (size_t)2 * BLOCKS * PROCESSES);
	ledger_gave(BLOCK_BYTES, (size_t)2 * BLOCKS * PROCESSES);
	ledger_print();
	return 0;
}
