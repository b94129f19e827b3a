/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * early_guests.c - a child in its parent's memory, as vfork's is, allocates before the thread
 * that made it; with an argument, before all else of a fork's child, where nobody need record it
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define HOST_BYTES 20681
#define GUEST_BYTES 20693
#define STACK_BYTES (256 * 1024)
#define CHILDREN 10
#define TAKEN 5000

static char stack[STACK_BYTES] __attribute__((aligned(16)));
static pthread_barrier_t meeting;
static bool before_all;

static int guest_takes(void *unused)
{
	(void)unused;
	free(ledger_block(malloc(GUEST_BYTES)));
	return 0;
}

static void have_guest(void)
{
	int status;
	pid_t guest = clone(guest_takes, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
			    NULL);

	demand(guest > 0 && waitpid(guest, &status, 0) == guest && status == 0);
}

LEDGER_SITE static void take(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(HOST_BYTES)));
	ledger_took(__func__, LEDGER_END, HOST_BYTES, TAKEN);
	ledger_gave(HOST_BYTES, TAKEN);
}

/* Allocates for the first time while the host goes on. */
static void *neighbour(void *unused)
{
	pthread_barrier_wait(&meeting);
	take();
	return unused;
}

static void *host(void *unused)
{
	have_guest();
	if (!before_all) {
		ledger_took(NULL, NULL, GUEST_BYTES, 1);
		ledger_gave(GUEST_BYTES, 1);
	}
	pthread_barrier_wait(&meeting);
	take();
	return unused;
}

/* Their stacks are left from the parent's, so that to start them takes no memory. */
static void run_threads(void)
{
	pthread_t threads[2];

	demand(!pthread_create(&threads[0], NULL, host, NULL));
	demand(!pthread_create(&threads[1], NULL, neighbour, NULL));
	demand(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
}

int main(int argc, char **argv)
{
	(void)argv;
	before_all = argc > 1;
	demand(!pthread_barrier_init(&meeting, NULL, 2));
	run_threads();
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		demand(child >= 0);
		if (child == 0) {
			if (!before_all)
				take();
			run_threads();
			_exit(0);
		}
		demand(waitpid(child, &status, 0) == child && status == 0);
	}
	ledger_print();
	return 0;
}
