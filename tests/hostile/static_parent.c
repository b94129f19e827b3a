/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * static_parent.c - statically linked: allocates, runs the program that its arguments name in
 * a child, and exits as that does; without any it is such a child itself
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

#define BYTES 20089
/* Of work in all, so that it is there to be found. */
#define LINGER_US 300000

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	for (int i = 0; i < 100; i++) {
		char *block = malloc(BYTES);

		demand(block);
		*(volatile char *)block = 1;
		free(block);
	}
	usleep(LINGER_US);
	if (argc < 2)
		return 0;
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	demand(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}
