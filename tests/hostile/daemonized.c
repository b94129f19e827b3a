/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemonized.c - a daemon by the book: two forks, a session of its own, all descriptors
 * closed, another directory; its parent waits until the end of its pipe only
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20479
#define TAKEN 200

LEDGER_SITE static void take_in_daemon(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static int be_daemon(int end)
{
	if (dup2(end, 0) != 0 || syscall(SYS_close_range, 1, ~0U, 0))
		return 1;
	if (open("/dev/null", O_RDWR) != 1 || dup(1) != 2)
		return 2;
	umask(0);
	if (chdir("/") || getsid(0) == getpid())
		return 3;
	take_in_daemon();
	return write(0, "done", 4) != 4;
}

int main(void)
{
	int ends[2], status;
	char said[8];
	pid_t child;

	demand(!pipe(ends));
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		demand(setsid() == getpid());
		child = fork();
		demand(child >= 0);
		_exit(child ? 0 : be_daemon(ends[1]));
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	close(ends[1]);
	demand(read(ends[0], said, sizeof(said)) == 4);
	demand(read(ends[0], said, sizeof(said)) == 0);
	ledger_print();
	return 0;
}
