/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * no_counter.c - allocates where reading the time-stamp counter is fatal, as the vDSO's clock
 * does; so do a thread and a child, which inherit that, and whoever gives up system calls, too
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BLOCK_BYTES 20627
#define TAKEN 1000

LEDGER_SITE static void take(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_END, BLOCK_BYTES, TAKEN);
	ledger_gave(BLOCK_BYTES, TAKEN);
}

static void *work(void *unused)
{
	take();
	return unused;
}

static void take_everywhere(void)
{
	pthread_t thread;

	take();
	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
}

int main(void)
{
	int status;
	pid_t child;

	take();
	demand(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	take_everywhere();
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		take_everywhere();
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	demand(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	take_everywhere();
	ledger_print();
	return 0;
}
