/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vfork_gives_up.c - a vfork's child gives up privileges, which its parent keeps, and a thread of
 * the parent's allocates whose frames need more than a page
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BLOCK_BYTES 359
#define BLOCKS 10
#define FRAME_BYTES 1024
#define DEPTH 5

LEDGER_SITE static void descend(int depth)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = (char)depth;
	if (depth)
		descend(depth - 1);
	else
		free(ledger_block(malloc(BLOCK_BYTES)));
	frame[1] = frame[0];
}

LEDGER_SITE static void *run_thread(void *unused)
{
	for (int i = 0; i < BLOCKS; i++)
		descend(DEPTH);
	return unused;
}

int main(void)
{
	pthread_t thread;
	int status;
	pid_t child;

	free(ledger_block(malloc(1)));
	child = vfork();
	demand(child >= 0);
	if (!child)
		_exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0);
	demand(waitpid(child, &status, 0) == child && !status);
	demand(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	demand(!pthread_create(&thread, NULL, run_thread, NULL));
	demand(!pthread_join(thread, NULL));
	ledger_took("descend", "run_thread", BLOCK_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS);
	ledger_print();
	return 0;
}
