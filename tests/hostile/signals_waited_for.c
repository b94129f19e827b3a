/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * signals_waited_for.c - a thread takes each signal that there is by sigwaitinfo(), all of
 * them blocked everywhere; those that the others raise amid allocations, and only those,
 * arrive
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30473
#define SIGNALS 400

static sigset_t all;

LEDGER_SITE static void take_and_raise(int i)
{
	union sigval value = { .sival_int = i };
	void *block = ledger_block(malloc(BLOCK_BYTES));

	ledger_took(__func__, "main", BLOCK_BYTES, 1);
	if (sigqueue(getpid(), SIGRTMIN + i % 8, value))
		abort();
	free(block);
	ledger_gave(BLOCK_BYTES, 1);
}

static void *receive(void *unused)
{
	long wrong = 0;
	siginfo_t info;

	for (int i = 0; i < SIGNALS; i++) {
		free(ledger_block(malloc(BLOCK_BYTES)));
		ledger_took(NULL, NULL, BLOCK_BYTES, 1);
		ledger_gave(BLOCK_BYTES, 1);
		if (sigwaitinfo(&all, &info) < 0)
			abort();
		if (info.si_code != SI_QUEUE || info.si_pid != getpid())
			fprintf(stderr, "signal %d of process %d, code %d\n", info.si_signo,
				info.si_pid, info.si_code);
		wrong += info.si_code != SI_QUEUE ||
			 info.si_signo != SIGRTMIN + info.si_value.sival_int % 8;
	}
	return (void *)wrong;
}

int main(void)
{
	pthread_t thread;
	sigset_t mask;
	void *wrong;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) || pthread_create(&thread, NULL, receive, NULL))
		return 3;
	for (int i = 0; i < SIGNALS; i++)
		take_and_raise(i);
	pthread_join(thread, &wrong);
	if (wrong)
		return fprintf(stderr, "%ld signals were others than sent\n", (long)wrong), 4;
	if (sigpending(&mask) || !sigisemptyset(&mask))
		return fprintf(stderr, "signals are left\n"), 5;
	if (sigprocmask(SIG_SETMASK, NULL, &mask) || !sigismember(&mask, SIGRTMAX) ||
	    !sigismember(&mask, SIGUSR1))
		return fprintf(stderr, "the mask is another than was set\n"), 6;
	ledger_print();
	return 0;
}
