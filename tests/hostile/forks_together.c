/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * forks_together.c - in a fork's child one thread allocates for the first time while another
 * forks again
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define PARENT_BYTES 20639
#define CHILD_BYTES 20641
#define CHILDREN 400
#define STEPS 40
#define STEP 100

static int waiting;

static void meet(void)
{
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) > 0)
		;
}

LEDGER_SITE static void take_in_parent(void)
{
	free(ledger_block(malloc(PARENT_BYTES)));
	ledger_took(__func__, LEDGER_END, PARENT_BYTES, 1);
	ledger_gave(PARENT_BYTES, 1);
}

LEDGER_SITE static void take_in_child(void)
{
	free(ledger_block(malloc(CHILD_BYTES)));
	ledger_took(__func__, LEDGER_END, CHILD_BYTES, 1);
	ledger_gave(CHILD_BYTES, 1);
}

static void *allocate(void *unused)
{
	meet();
	take_in_parent();
	return unused;
}

/* A little later each time. */
static void *fork_again(void *arg)
{
	int status;
	pid_t child;

	meet();
	for (volatile int i = 0; i < *(int *)arg; i++)
		;
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		take_in_child();
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	return NULL;
}

static void run_threads(int delay)
{
	pthread_t threads[2];

	waiting = 2;
	demand(!pthread_create(&threads[0], NULL, allocate, NULL));
	demand(!pthread_create(&threads[1], NULL, fork_again, &delay));
	demand(!pthread_join(threads[0], NULL));
	demand(!pthread_join(threads[1], NULL));
}

int main(void)
{
	/* Leaves the threads' stacks, so that to start them again takes no memory. */
	run_threads(0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		demand(child >= 0);
		if (child == 0) {
			run_threads(i % STEPS * STEP);
			_exit(0);
		}
		demand(waitpid(child, &status, 0) == child && status == 0);
	}
	ledger_print();
	return 0;
}
