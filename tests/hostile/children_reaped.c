/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * children_reaped.c - a program's children are those that it made, and it reaps all of them
 *
 * system(), popen(), wait() until there is none, and a SIGCHLD that is ignored: a child of
 * somebody else in the process would show in each.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23091
#define ROUNDS 5

static volatile sig_atomic_t deaths;

static void on_death(int number)
{
	(void)number;
	deaths++;
}

static int run_shells(void)
{
	char line[16];

	for (int i = 0; i < ROUNDS; i++) {
		FILE *pipe;
		int status;

		free(ledger_block(malloc(BLOCK_BYTES)));
		status = system("exit 7");
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
			return 11;
		pipe = popen("echo popened", "r");
		if (!pipe || !fgets(line, sizeof(line), pipe))
			return 12;
		if (pclose(pipe))
			return 13;
	}
	return wait(NULL) != -1 || errno != ECHILD ? 14 : 0;
}

/* One death for each child, and no more. */
static int count_deaths(void)
{
	struct sigaction action = { .sa_handler = on_death, .sa_flags = SA_RESTART };
	int status;

	sigaction(SIGCHLD, &action, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = fork();

		if (child == 0) {
			free(ledger_block(malloc(BLOCK_BYTES)));
			_exit(3);
		}
		if (child < 0 || waitpid(-1, &status, 0) != child || WEXITSTATUS(status) != 3)
			return 21;
	}
	if (deaths != ROUNDS || wait(NULL) != -1 || errno != ECHILD)
		return 22;
	return 0;
}

static int ignore_deaths(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = fork();

		if (child == 0) {
			free(ledger_block(malloc(BLOCK_BYTES)));
			_exit(0);
		}
		if (child < 0)
			return 31;
	}
	/* Returns when the last has gone. */
	return wait(NULL) != -1 || errno != ECHILD ? 32 : 0;
}

int main(void)
{
	int failed = run_shells();

	failed = failed ? failed : count_deaths();
	failed = failed ? failed : ignore_deaths();
	if (failed)
		return failed;
	ledger_took(NULL, NULL, BLOCK_BYTES, 3 * ROUNDS);
	ledger_gave(BLOCK_BYTES, 3 * ROUNDS);
	ledger_print();
	return 0;
}
