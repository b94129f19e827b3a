/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ignored_children.c - children that nobody waits for, since SIGCHLD is ignored: their
 * process ids are free at once; a chain of children, each a child's child; and forks in a
 * signal handler
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define IGNORED_BYTES 20483
#define CHAIN_BYTES 20507
#define HANDLER_BYTES 20509
#define CHILDREN 60
#define DEPTH 30

LEDGER_SITE static void take(size_t size)
{
	free(ledger_block(malloc(size)));
	ledger_took(__func__, LEDGER_END, size, 1);
	ledger_gave(size, 1);
}

static pid_t start(size_t size)
{
	pid_t child = fork();

	demand(child >= 0);
	if (child == 0) {
		take(size);
		_exit(0);
	}
	return child;
}

static void be_link(int depth)
{
	int status;
	pid_t child;

	take(CHAIN_BYTES);
	if (!depth)
		return;
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		be_link(depth - 1);
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
}

static void fork_in_handler(int signal)
{
	int status;
	pid_t child = start(HANDLER_BYTES);

	(void)signal;
	demand(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
	be_link(DEPTH);
	signal(SIGUSR1, fork_in_handler);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < CHILDREN; i++)
		start(IGNORED_BYTES);
	demand(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	ledger_print();
	return 0;
}
