/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * timer_and_fork.c - a timer that interrupts every millisecond: calls of malloc neither fail
 * nor touch errno, forks of much memory come to an end, and only the program's own system
 * calls are interrupted
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20407
#define CHILD_BYTES 20411
#define ROUNDS 20000
#define FORKS 10
#define BALLAST_BYTES (48UL << 20)
#define PERIOD_US 1000

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
	(void)signal;
	ticks++;
}

LEDGER_SITE static void take_interrupted(void)
{
	void *block;

	errno = E2BIG;
	block = ledger_block(malloc(BYTES));
	demand(errno == E2BIG);
	free(block);
	demand(errno == E2BIG);
}

LEDGER_SITE static void take_in_child(void)
{
	free(ledger_block(malloc(CHILD_BYTES)));
	ledger_took(__func__, "main", CHILD_BYTES, 1);
	ledger_gave(CHILD_BYTES, 1);
}

static void fork_interrupted(void)
{
	pid_t child = fork(), ended;
	int status;

	demand(child >= 0);
	if (child == 0) {
		take_in_child();
		_exit(0);
	}
	while ((ended = waitpid(child, &status, 0)) < 0)
		demand(errno == EINTR);
	demand(ended == child && status == 0);
}

int main(void)
{
	const struct itimerval often = { { 0, PERIOD_US }, { 0, PERIOD_US } };
	struct sigaction action = { .sa_handler = tick };
	struct itimerval never = { 0 };
	char *ballast;

	demand(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; i < ROUNDS; i++)
		take_interrupted();
	ledger_took("take_interrupted", "main", BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
	ballast = ledger_block(malloc(BALLAST_BYTES));
	memset(ballast, 1, BALLAST_BYTES);
	for (int i = 0; i < FORKS; i++)
		fork_interrupted();
	demand(!setitimer(ITIMER_REAL, &never, NULL) && ticks);
	free(ballast);
	ledger_print();
	return 0;
}
