/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * late_last_thread.c - the main thread has ended, and looks like a zombie to whoever asks for
 * the process, long before the other thread allocates for the first time; with an argument, in
 * a child of the first process of a PID namespace
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BLOCK_BYTES 20663
#define TAKEN 1000

/* Longer than it takes to look at all processes several times. */
static const struct timespec long_time = { .tv_nsec = 500 * 1000 * 1000 };

LEDGER_SITE static void *take_late(void *main_thread)
{
	demand(!pthread_join(*(pthread_t *)main_thread, NULL));
	demand(!nanosleep(&long_time, NULL));
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_END, BLOCK_BYTES, TAKEN);
	ledger_gave(BLOCK_BYTES, TAKEN);
	ledger_print();
	return NULL;
}

/* The child goes on. */
static void fork_and_wait(void)
{
	pid_t child = fork();
	int status;

	demand(child >= 0);
	if (child == 0)
		return;
	demand(waitpid(child, &status, 0) == child && status == 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	static pthread_t main_thread;
	pthread_t thread;

	if (argc == 2) {
		demand(!unshare(CLONE_NEWPID));
		fork_and_wait();
		execl("/proc/self/exe", argv[0], argv[1], "executed", NULL);
		return DEMAND_STATUS;
	}
	if (argc == 3)
		fork_and_wait();
	main_thread = pthread_self();
	demand(!pthread_create(&thread, NULL, take_late, &main_thread));
	pthread_exit(NULL);
}
