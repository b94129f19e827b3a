/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * late_plugin.c - the fork's children of a process with threads load a plugin and close it again,
 * several times, and one of their threads does so too
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"
#include "tests/hostile/exchange_plugin.h"

#define LOADS 3
#define CHILDREN 4

static const char *path;

static void *wait_for_end(void *unused)
{
	pause();
	return unused;
}

static void *take_from_plugin(void *unused)
{
	for (int i = 0; i < LOADS; i++)
		exchange_plugin_visit(path, LEDGER_END);
	return unused;
}

static void be_child(int threads)
{
	pthread_t thread;

	take_from_plugin(NULL);
	if (threads) {
		demand(!pthread_create(&thread, NULL, take_from_plugin, NULL));
		demand(!pthread_join(thread, NULL));
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;

	demand(argc > 1);
	path = argv[1];
	demand(!pthread_create(&thread, NULL, wait_for_end, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		demand(child >= 0);
		if (child == 0)
			be_child(i % 2);
		demand(waitpid(child, &status, 0) == child && !status);
	}
	ledger_print();
	return 0;
}
