/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * single_steps.c - allocates while each instruction traps: those of a child that its parent
 * steps through, as a debugger that watches a variable does; and those of a program that has
 * set its own trap flag
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20963
#define TAKEN 3
/* Some thousand are needed. */
#define STEPS_MAX 300000
#define TRAP_FLAG "0x100"

static volatile sig_atomic_t traps;

LEDGER_SITE static void take_stepped(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static void count_trap(int number)
{
	demand(++traps < STEPS_MAX);
}

static void step_itself(void)
{
	signal(SIGTRAP, count_trap);
	__asm__ volatile("subq $128, %%rsp\n\tpushfq\n\torq $" TRAP_FLAG ", (%%rsp)\n\tpopfq\n\t"
			 "addq $128, %%rsp" ::
				 : "memory", "cc");
	take_stepped();
	__asm__ volatile("subq $128, %%rsp\n\tpushfq\n\tandq $~" TRAP_FLAG ", (%%rsp)\n\tpopfq\n\t"
			 "addq $128, %%rsp" ::
				 : "memory", "cc");
	signal(SIGTRAP, SIG_DFL);
	take_stepped();
	demand(traps);
}

static void be_stepped(void)
{
	demand(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	take_stepped();
	_exit(0);
}

static void step_child(void)
{
	int status, steps = 0;
	pid_t child = fork();

	demand(child >= 0);
	if (child == 0)
		be_stepped();
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		demand(WSTOPSIG(status) == (steps ? SIGTRAP : SIGSTOP));
		if (++steps == STEPS_MAX)
			kill(child, SIGKILL);
		demand(steps < STEPS_MAX);
		demand(!ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
	}
	demand(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	take_stepped();
	step_child();
	step_itself();
	ledger_print();
	return 0;
}
