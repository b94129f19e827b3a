/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * atfork_handlers.c - fork handlers that allocate, also in a thread that they wait for; some
 * are registered before memtrack's could be, some after
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define PREPARE_BYTES 20173
#define PARENT_BYTES 20177
#define CHILD_BYTES 20183
#define THREAD_BYTES 20201
#define FORKS 20

LEDGER_SITE static void *take_in_thread(void *unused)
{
	free(ledger_block(malloc(THREAD_BYTES)));
	ledger_took(__func__, LEDGER_END, THREAD_BYTES, 1);
	ledger_gave(THREAD_BYTES, 1);
	return unused;
}

LEDGER_SITE static void take_prepare(void)
{
	free(ledger_block(malloc(PREPARE_BYTES)));
	ledger_took(__func__, "main", PREPARE_BYTES, 1);
	ledger_gave(PREPARE_BYTES, 1);
}

static void prepare(void)
{
	pthread_t thread;

	take_prepare();
	demand(!pthread_create(&thread, NULL, take_in_thread, NULL));
	demand(!pthread_join(thread, NULL));
}

LEDGER_SITE static void take_parent(void)
{
	free(ledger_block(malloc(PARENT_BYTES)));
	ledger_took(__func__, "main", PARENT_BYTES, 1);
	ledger_gave(PARENT_BYTES, 1);
}

LEDGER_SITE static void take_child(void)
{
	free(ledger_block(malloc(CHILD_BYTES)));
	ledger_took(__func__, "main", CHILD_BYTES, 1);
	ledger_gave(CHILD_BYTES, 1);
}

static void start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	demand(!pthread_atfork(prepare, take_parent, take_child));
}

__attribute__((section(".preinit_array"), used)) static void (*const entry)(int, char **,
									    char **) = start;

int main(void)
{
	int status;

	demand(!pthread_atfork(prepare, take_parent, take_child));
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		demand(child >= 0);
		if (child == 0)
			_exit(0);
		demand(waitpid(child, &status, 0) == child && status == 0);
	}
	ledger_print();
	return 0;
}
