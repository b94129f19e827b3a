/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * alone_in_process.c - a program that has done nothing but allocate has one thread, no
 * children, no signals pending, blocked or handled, no code that can be written, and errno
 * as it was
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20431
#define ROUNDS 2000
/* The C library keeps two for itself. */
#define FIRST_INTERNAL 32

static int entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = -2;

	demand(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void look_at_signals(void)
{
	sigset_t set;

	for (int signal = 1; signal < FIRST_INTERNAL; signal++) {
		struct sigaction action;

		demand(!sigaction(signal, NULL, &action));
		demand(action.sa_handler == SIG_DFL);
	}
	demand(!sigprocmask(SIG_BLOCK, NULL, &set) && sigisemptyset(&set));
	demand(!sigpending(&set) && sigisemptyset(&set));
}

static void look_at_timers(void)
{
	struct itimerval timer;

	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		demand(!getitimer(which, &timer) && !timer.it_value.tv_sec &&
		       !timer.it_value.tv_usec);
}

static void look_at_memory(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	demand(maps);
	while (fgets(line, sizeof(line), maps)) {
		char *access = strchr(line, ' ');

		demand(access);
		if (access[2] == 'w' && access[3] == 'x') {
			fprintf(stderr, "code that can be written: %s", line);
			exit(DEMAND_STATUS);
		}
	}
	fclose(maps);
}

static void look(void)
{
	demand(errno == 0);
	demand(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	demand(entries("/proc/self/task") == 1);
	look_at_signals();
	look_at_timers();
	look_at_memory();
	errno = 0;
}

LEDGER_SITE static void take(void)
{
	for (int i = 0; i < ROUNDS; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
}

int main(void)
{
	look();
	take();
	look();
	ledger_print();
	return 0;
}
