/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wiped_environment.c - children that are started without the environment, or without one of
 * its variables, find exactly what they were given
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

#define PARENT_BYTES 20333
#define CHILD_BYTES 20341
#define LINGER_US 300000

static void take(size_t size)
{
	for (int i = 0; i < 10; i++) {
		void *volatile block = malloc(size);

		demand(block);
		free(block);
	}
}

static void start(char **argv, char **envp, int how)
{
	int status;
	pid_t child = fork();

	demand(child >= 0);
	if (child == 0) {
		if (how == 'c')
			clearenv();
		else
			environ = envp;
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	demand(waitpid(child, &status, 0) == child);
	demand(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
	char none[] = "none", one[] = "one", odd[] = "no equals sign", empty[] = "", x[] = "X=1";
	char *with_none[] = { argv[0], none, NULL }, *with_one[] = { argv[0], one, NULL };
	char *nothing[] = { NULL }, *strange[] = { odd, empty, x, x, NULL };

	if (argc > 1) {
		int count = 0;

		while (environ && environ[count])
			count++;
		demand(count == (strcmp(argv[1], "none") ? 4 : 0));
		take(CHILD_BYTES);
		usleep(LINGER_US);
		return 0;
	}
	take(PARENT_BYTES);
	start(with_none, nothing, 'e');
	start(with_none, NULL, 'c');
	start(with_one, strange, 'e');
	puts("started");
	return 0;
}
