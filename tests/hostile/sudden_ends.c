/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sudden_ends.c - ends right after its last allocation, in all the ways there are
 * (sudden_ends HOW); what it did is recorded to the last block
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30741
#define LAST_BYTES 30743
#define BLOCKS 1000

static int *volatile nowhere;

LEDGER_SITE static void take_last(void)
{
	ledger_block(malloc(LAST_BYTES));
}

/* The ledger is printed first: nothing is to come after the last block. */
static void take_all(void)
{
	ledger_took("take_last", LEDGER_ANY, LAST_BYTES, 1);
	ledger_took(NULL, NULL, BLOCK_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS / 2);
	ledger_print();
	for (int i = 0; i < BLOCKS; i++) {
		void *block = ledger_block(malloc(BLOCK_BYTES));

		if (i & 1)
			free(block);
	}
	take_last();
}

static void end_by_exit(void)
{
	take_all();
	_exit(7);
}

static void end_by_raw_exit(void)
{
	take_all();
	syscall(SYS_exit_group, 8);
}

static void end_quickly(void)
{
	at_quick_exit(take_all);
	quick_exit(9);
}

static void end_in_exit_handler(void)
{
	atexit(end_by_exit);
	exit(10);
}

static void end_by_abort(void)
{
	take_all();
	abort();
}

static void end_by_fault(void)
{
	take_all();
	*(volatile int *)nowhere = 1;
}

static void end_by_trap(void)
{
	take_all();
	__builtin_trap();
}

static void end_by_kill(void)
{
	take_all();
	kill(getpid(), SIGKILL);
}

static void end_by_alarm(void)
{
	take_all();
	raise(SIGALRM);
}

static void *exit_in_thread(void *unused)
{
	take_all();
	exit(3);
}

static void end_by_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, exit_in_thread, NULL))
		return;
	for (;;)
		pause();
}

static void *leave_last(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	take_all();
	return NULL;
}

/* The last thread's end is the process's, with status 0. */
static void end_by_last_thread(void)
{
	static pthread_t main_thread;
	pthread_t thread;

	main_thread = pthread_self();
	if (!pthread_create(&thread, NULL, leave_last, &main_thread))
		pthread_exit(NULL);
}

/* exec() of what is not there, then of what is: that one allocates nothing that we know. */
static void end_by_exec(void)
{
	take_all();
	execl("/no/such/file", "none", NULL);
	execl("/bin/sh", "sh", "-c", "exit 12", NULL);
}

static const struct {
	const char *how;
	void (*end)(void);
} ends[] = {
	{ "_exit", end_by_exit },
	{ "exit_group", end_by_raw_exit },
	{ "quick_exit", end_quickly },
	{ "atexit", end_in_exit_handler },
	{ "abort", end_by_abort },
	{ "fault", end_by_fault },
	{ "trap", end_by_trap },
	{ "kill", end_by_kill },
	{ "alarm", end_by_alarm },
	{ "thread", end_by_thread },
	{ "last_thread", end_by_last_thread },
	{ "exec", end_by_exec },
};

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; argc > 1 && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(ends[i].how, argv[1]))
			ends[i].end();
	return 2;
}
