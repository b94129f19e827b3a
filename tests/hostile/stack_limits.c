/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stack_limits.c - images whose stack may be 128 KiB, or without a limit, and which then
 * change the limit
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20477
#define DEPTH 20
#define FRAME_BYTES 2048

LEDGER_SITE static void take_deep(int depth)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = frame[FRAME_BYTES - 1] = (char)depth;
	if (depth)
		take_deep(depth - 1);
	else
		free(ledger_block(malloc(BYTES)));
	frame[1] = frame[0];
}

static int be_image(void)
{
	struct rlimit limit;

	take_deep(DEPTH);
	demand(!getrlimit(RLIMIT_STACK, &limit));
	limit.rlim_cur = 64 * 1024;
	demand(!setrlimit(RLIMIT_STACK, &limit));
	take_deep(DEPTH / 2);
	return 0;
}

static void start(char *self, rlim_t bytes)
{
	int status;
	pid_t child = fork();

	demand(child >= 0);
	if (child == 0) {
		struct rlimit limit;

		demand(!getrlimit(RLIMIT_STACK, &limit));
		limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
		demand(!setrlimit(RLIMIT_STACK, &limit));
		execl("/proc/self/exe", self, "image", NULL);
		_exit(127);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	ledger_took(NULL, NULL, BYTES, 2);
	ledger_gave(BYTES, 2);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return be_image();
	start(argv[0], 128 * 1024);
	start(argv[0], RLIM_INFINITY);
	ledger_print();
	return 0;
}
