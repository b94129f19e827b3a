/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced_child.c - traces a child that allocates and executes another image: the tracer sees
 * the stops that there are without memtrack, and no others
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20521
#define TAKEN 300

LEDGER_SITE static void take_traced(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static void be_child(char *self)
{
	demand(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	take_traced();
	raise(SIGUSR1);
	execl("/proc/self/exe", self, "image", NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	static const int expected[] = { SIGSTOP, SIGUSR1, SIGTRAP };
	size_t stops = 0;
	int status;
	pid_t child;

	if (argc > 1) {
		take_traced();
		ledger_print();
		return 11;
	}
	signal(SIGUSR1, SIG_IGN);
	child = fork();
	demand(child >= 0);
	if (child == 0)
		be_child(argv[0]);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		demand(stops < sizeof(expected) / sizeof(expected[0]));
		demand(WSTOPSIG(status) == expected[stops]);
		stops++;
		demand(!ptrace(PTRACE_CONT, child, NULL, NULL));
	}
	demand(stops == 3 && WIFEXITED(status) && WEXITSTATUS(status) == 11);
	ledger_took("take_traced", "main", BYTES, 0);
	ledger_print();
	return 0;
}
