/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * raw_fork.c - processes that the C library does not know to be new: by the system calls
 * fork and clone, and by clone() onto a stack of their own, with and without the parent's
 * memory; all allocate, and so does a thread in each that the C library makes, in some before
 * all else: what they had from a profiler is free again when they have ended
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
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
#define THREADED 12

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

/* The stack of a thread that has ended is the next one's: pthread_create() takes no memory. */
static void be_threaded(void)
{
	pthread_t thread;

	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
	take(LEDGER_END, CHILD_BYTES);
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

static void fork_raw(long number, void (*be)(void))
{
	pid_t child = number == SYS_fork ? syscall(SYS_fork)
					 : syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0UL);

	if (child == 0) {
		be();
		_exit(0);
	}
	await(child);
}

static int count_mappings(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), count = 0;
	char text[4096];
	ssize_t n;

	demand(fd >= 0);
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++)
			count += text[i] == '\n';
	close(fd);
	return count;
}

static int *mappings;

static void be_measured(void)
{
	be_threaded();
	*mappings = count_mappings();
}

/* The last one needs no more than the first. */
static void fork_threaded(void)
{
	int first;

	mappings = mmap(NULL, sizeof(*mappings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	demand(mappings != MAP_FAILED);
	be_threaded();
	fork_raw(SYS_clone, be_measured);
	first = *mappings;
	for (int i = 1; i < THREADED; i++)
		fork_raw(SYS_clone, be_measured);
	demand(*mappings <= first);
}

int main(void)
{
	take(LEDGER_END, CHILD_BYTES);
	fork_threaded();
	for (int i = 0; i < ROUNDS; i++) {
		fork_raw(SYS_fork, be_child);
		fork_raw(SYS_clone, be_child);
		await(clone(be_cloned, stack + STACK_BYTES, SIGCHLD, NULL));
		await(clone(be_sharer, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
			    NULL));
		await(clone(be_sharer, stack + STACK_BYTES, CLONE_VM | CLONE_FS | SIGCHLD, NULL));
		take(LEDGER_END, CHILD_BYTES);
	}
	ledger_print();
	return 0;
}
