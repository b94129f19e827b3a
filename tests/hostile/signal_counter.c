/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * signal_counter.c - how often does a signal that is sent to the command arrive?
 *
 * signal_counter NUMBER waits for the signal, then a little for a second one, prints how many
 * came, and exits with 21.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23011
#define STATUS 21

/* Signals are blocked but while they are waited for: none comes between check and wait. */
int main(int argc, char **argv)
{
	const struct timespec patience = { .tv_sec = 30 }, little = { .tv_nsec = 100 * 1000000 };
	int number = (int)ledger_number(argc > 1 ? argv[1] : NULL, SIGTERM), count = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 2;
	free(ledger_block(malloc(BLOCK_BYTES)));
	while (sigtimedwait(&set, NULL, count ? &little : &patience) == number) {
		free(ledger_block(malloc(BLOCK_BYTES)));
		count++;
	}
	printf("%d\n", count);
	return fflush(stdout) ? 3 : STATUS;
}
