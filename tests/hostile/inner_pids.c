/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inner_pids.c - a child that is process 1 of a namespace of its own, with threads and a
 * child of its own, whose ids are those of other processes outside
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20359
#define TAKEN 25
#define THREADS 4

LEDGER_SITE static void take_inside(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_END, BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static void *work(void *unused)
{
	take_inside();
	return unused;
}

static void await(pid_t child)
{
	int status;

	demand(child > 0);
	demand(waitpid(child, &status, 0) == child && status == 0);
}

static void be_first(void)
{
	pthread_t threads[THREADS];
	pid_t child;

	demand(getpid() == 1 && getppid() == 0);
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_create(&threads[i], NULL, work, NULL));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_join(threads[i], NULL));
	child = fork();
	if (child == 0) {
		take_inside();
		_exit(0);
	}
	await(child);
}

int main(void)
{
	pid_t child;

	demand(!unshare(CLONE_NEWPID));
	child = fork();
	if (child == 0) {
		be_first();
		_exit(0);
	}
	await(child);
	ledger_print();
	return 0;
}
