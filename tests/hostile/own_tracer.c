/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_tracer.c - a debugger in the tree: sees the stops that it asked for, and no others
 *
 * The parent seizes its child, which allocates all the time, and interrupts it again and
 * again.  A stop for a signal, or one that was not asked for, is somebody else's doing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23021
#define INTERRUPTS 100
#define EVENT_STOP (SIGTRAP | PTRACE_EVENT_STOP << 8)

static volatile int *stop;

LEDGER_SITE static void *take_under_tracer(void)
{
	return ledger_block(malloc(BLOCK_BYTES));
}

static void storm(void)
{
	size_t pairs = 0;

	while (!*stop || pairs < 1000) {
		free(take_under_tracer());
		pairs++;
	}
	ledger_took("take_under_tracer", "main", BLOCK_BYTES, pairs);
	ledger_gave(BLOCK_BYTES, pairs);
}

int main(void)
{
	pid_t child;
	int status;

	stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stop == MAP_FAILED)
		return 2;
	child = fork();
	if (child == 0) {
		storm();
		_exit(0);
	}
	if (child < 0 || ptrace(PTRACE_SEIZE, child, 0, 0)) {
		perror("own_tracer: seize");
		return 3;
	}
	for (int i = 0; i < INTERRUPTS; i++) {
		if (ptrace(PTRACE_INTERRUPT, child, 0, 0) ||
		    waitpid(child, &status, __WALL) != child)
			return 4;
		if (!WIFSTOPPED(status) || status >> 8 != EVENT_STOP) {
			fprintf(stderr, "own_tracer: stop %d is %#x\n", i, (unsigned)status);
			return 5;
		}
		if (ptrace(PTRACE_CONT, child, 0, 0))
			return 6;
	}
	*stop = 1;
	if (waitpid(child, &status, __WALL) != child || status) {
		fprintf(stderr, "own_tracer: the child ends with %#x\n", (unsigned)status);
		return 7;
	}
	ledger_print();
	return 0;
}
