/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * never_stopped.c - a process that allocates in threads is never stopped or continued by
 * anyone: its handler of SIGCONT is not called, its parent sees nothing but its end, and no
 * signal at all arrives
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30461
#define THREADS 3
#define ROUNDS 30000

static volatile sig_atomic_t signals[NSIG];

static void count(int signal)
{
	signals[signal] = signals[signal] + 1;
}

LEDGER_SITE static void take_many(void)
{
	for (int i = 0; i < ROUNDS; i++)
		free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, "work", BLOCK_BYTES, ROUNDS);
	ledger_gave(BLOCK_BYTES, ROUNDS);
}

static void *work(void *unused)
{
	take_many();
	return NULL;
}

/* All that can be handled; what is the kernel's answer to a fault would be seen anyway. */
static void handle_all(void)
{
	struct sigaction action = { .sa_handler = count };

	for (int i = 1; i < NSIG; i++)
		if (i != SIGKILL && i != SIGSTOP && i != SIGSEGV && i != SIGBUS)
			sigaction(i, &action, NULL);
}

static int run_child(void)
{
	pthread_t threads[THREADS];
	int arrived = 0;

	handle_all();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < NSIG; i++) {
		if (signals[i])
			fprintf(stderr, "signal %d arrived %d times\n", i, (int)signals[i]);
		arrived += signals[i];
	}
	return arrived ? 4 : 0;
}

int main(void)
{
	siginfo_t info = { 0 };
	int changes = 0;
	pid_t child = fork();

	if (child < 0)
		return 2;
	if (!child)
		_exit(run_child());
	do {
		if (waitid(P_PID, child, &info, WEXITED | WSTOPPED | WCONTINUED))
			return 2;
		changes++;
	} while (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED);
	if (changes != 1 || info.si_code != CLD_EXITED || info.si_status) {
		fprintf(stderr, "%d changes of state, code %d, status %d\n", changes, info.si_code,
			info.si_status);
		return 5;
	}
	ledger_print();
	return 0;
}
