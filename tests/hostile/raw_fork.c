/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * raw_fork.c - processes that the C library does not know to be new: by the system calls
 * fork and clone, and by clone() onto a stack of their own, with and without the parent's
 * memory; all allocate, and so does a thread in each that the C library makes
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define CHILD_BYTES 20219
#define THREAD_BYTES 20231
#define SHARED_BYTES 20233
#define STACK_BYTES (256 * 1024)
#define ROUNDS 5
#define TAKEN 20

static char stack[STACK_BYTES] __attribute__((aligned(16)));

LEDGER_SITE static void take(const char *root, size_t size)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(size)));
	ledger_took(__func__, root, size, TAKEN);
	ledger_gave(size, TAKEN);
}

static void *work(void *unused)
{
	take(LEDGER_END, THREAD_BYTES);
	return unused;
}

static void be_child(void)
{
	pthread_t thread;

	take(LEDGER_END, CHILD_BYTES);
	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
}

static int be_cloned(void *unused)
{
	(void)unused;
	be_child();
	return 0;
}

/* Not a thread in it: the parent's is what it would look like. */
static int be_sharer(void *unused)
{
	(void)unused;
	take(LEDGER_END, SHARED_BYTES);
	return 0;
}

static void await(pid_t child)
{
	int status;

	demand(child > 0);
	if (waitpid(child, &status, __WALL) != child || status) {
		dprintf(STDERR_FILENO, "a child ends with %#x\n", (unsigned int)status);
		_exit(DEMAND_STATUS);
	}
}

static void fork_raw(long number)
{
	pid_t child = number == SYS_fork ? syscall(SYS_fork)
					 : syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0UL);

	if (child == 0) {
		be_child();
		_exit(0);
	}
	await(child);
}

int main(void)
{
	take(LEDGER_END, CHILD_BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		fork_raw(SYS_fork);
		fork_raw(SYS_clone);
		await(clone(be_cloned, stack + STACK_BYTES, SIGCHLD, NULL));
		await(clone(be_sharer, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
			    NULL));
		await(clone(be_sharer, stack + STACK_BYTES, CLONE_VM | CLONE_FS | SIGCHLD, NULL));
		take(LEDGER_END, CHILD_BYTES);
	}
	ledger_print();
	return 0;
}
