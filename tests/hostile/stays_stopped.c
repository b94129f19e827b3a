/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stays_stopped.c - a process that stopped itself amid its allocations stays so, however
 * much its sibling allocates meanwhile, until its parent lets it go on; the parent sees
 * one stop, one continuation and the end
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define STOPPED_BYTES 30467
#define SIBLING_BYTES 30469
#define STOPS 5

static int go_on[2];

/* Waits after it: the parent has to see the continuation before there is another stop. */
LEDGER_SITE static void take_around_stop(void)
{
	void *block = ledger_block(malloc(STOPPED_BYTES));
	char byte;

	ledger_took(__func__, "main", STOPPED_BYTES, 1);
	raise(SIGSTOP);
	if (read(go_on[0], &byte, 1) != 1)
		_exit(6);
	free(block);
	ledger_gave(STOPPED_BYTES, 1);
}

LEDGER_SITE static void take_beside(void)
{
	for (int i = 0; i < 5000; i++)
		free(ledger_block(malloc(SIBLING_BYTES)));
	ledger_took(__func__, "main", SIBLING_BYTES, 5000);
	ledger_gave(SIBLING_BYTES, 5000);
}

static char state_of(pid_t process)
{
	char path[64], line[512] = "";
	const char *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(line), file))
		exit(3);
	fclose(file);
	at = strrchr(line, ')');
	return at ? at[2] : '?';
}

static void expect(pid_t process, int wanted)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, process, &info, WEXITED | WSTOPPED | WCONTINUED))
		exit(3);
	if (info.si_code == wanted)
		return;
	fprintf(stderr, "change of state %d, not %d\n", info.si_code, wanted);
	kill(process, SIGKILL);
	exit(4);
}

static void run_sibling(void)
{
	pid_t sibling = fork();

	if (sibling < 0)
		exit(3);
	if (!sibling) {
		take_beside();
		_exit(0);
	}
	expect(sibling, CLD_EXITED);
}

int main(void)
{
	pid_t child;

	if (pipe(go_on))
		return 2;
	child = fork();
	if (child < 0)
		return 2;
	if (!child) {
		for (int i = 0; i < STOPS; i++)
			take_around_stop();
		_exit(0);
	}
	for (int i = 0; i < STOPS; i++) {
		expect(child, CLD_STOPPED);
		run_sibling();
		if (state_of(child) != 'T') {
			fprintf(stderr, "the stopped process is in state %c\n", state_of(child));
			kill(child, SIGKILL);
			return 5;
		}
		kill(child, SIGCONT);
		expect(child, CLD_CONTINUED);
		if (write(go_on[1], "", 1) != 1)
			return 3;
	}
	expect(child, CLD_EXITED);
	ledger_print();
	return 0;
}
