/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * odd_environment.c - an image with entries that are no variables, variables twice, thousands
 * of others before memtrack's, and one without any arguments: tracked all the same
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20347
#define TAKEN 30
#define FILLERS 3000

LEDGER_SITE static void take_in_image(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
}

static void start(char **argv, char **envp)
{
	int status;
	pid_t child = fork();

	demand(child >= 0);
	if (child == 0) {
		execve("/proc/self/exe", argv, envp);
		_exit(127);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	ledger_took("take_in_image", "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

int main(int argc, char **argv)
{
	char image[] = "image", *with_name[] = { argv[0], image, NULL }, *without[] = { NULL };
	char odd[] = "LD_PRELOADED", none[] = "", nameless[] = "=", filler[] = "FILLER=1";
	size_t count = 0, at = 0;
	char **envp;

	if (argc != 1 || !argv[0][0] || getenv("FILLER")) {
		take_in_image();
		return 0;
	}
	while (environ[count])
		count++;
	envp = calloc(FILLERS + 2 * count + 4, sizeof(*envp));
	demand(envp);
	envp[at++] = odd;
	envp[at++] = none;
	envp[at++] = nameless;
	while (at < FILLERS)
		envp[at++] = filler;
	for (int twice = 0; twice < 2; twice++)
		for (size_t i = 0; i < count; i++)
			envp[at++] = environ[i];
	start(with_name, envp);
	start(with_name, environ);
	start(without, environ);
	free(envp);
	ledger_print();
	return 0;
}
