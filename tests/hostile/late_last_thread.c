/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * late_last_thread.c - the main thread has ended, and looks like a zombie to whoever asks for
 * the process, long before the other thread allocates for the first time; with an argument, in
 * a child of the first process of a PID namespace: of one that was executed there, or was not
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* A number that no process has where this one is. */
static pid_t find_free_number(void)
{
	pid_t number = 30000;

	while (!kill(number, 0) || errno != ESRCH)
		number--;
	return number;
}

/* The next child's; as good as any other where the kernel does not take it. */
static void choose_number(pid_t number)
{
	FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "we");

	if (!last)
		return;
	fprintf(last, "%d", (int)number - 1);
	fclose(last);
}

int main(int argc, char **argv)
{
	static pthread_t main_thread;
	pid_t number = find_free_number();
	pthread_t thread;

	if (argc == 2) {
		demand(!unshare(CLONE_NEWPID));
		fork_and_wait();
		choose_number(number);
		if (!strcmp(argv[1], "executed"))
			execl("/proc/self/exe", argv[0], argv[1], "now", NULL);
	}
	if (argc > 1)
		fork_and_wait();
	main_thread = pthread_self();
	demand(!pthread_create(&thread, NULL, take_late, &main_thread));
	pthread_exit(NULL);
}
