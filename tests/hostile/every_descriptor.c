/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * every_descriptor.c - takes every descriptor number for its own file, then closes them all
 *
 * Legal, and whoever keeps a descriptor in the process has it replaced: what he writes is in
 * the file, which must have the program's own bytes only.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23121
#define BLOCKS 1000
#define LIMIT 512
#define TEXT "mine\n"

LEDGER_SITE static void *take_without_descriptors(void)
{
	return ledger_block(malloc(BLOCK_BYTES));
}

static void *allocate(void *unused)
{
	for (int i = 0; i < BLOCKS; i++)
		free(take_without_descriptors());
	return unused;
}

/* In this thread, a new one, and a child. */
static int allocate_everywhere(void)
{
	pthread_t thread;
	pid_t child;
	int status;

	allocate(NULL);
	if (pthread_create(&thread, NULL, allocate, NULL) || pthread_join(thread, NULL))
		return 11;
	child = fork();
	if (child == 0) {
		allocate(NULL);
		_exit(0);
	}
	return child < 0 || waitpid(child, &status, 0) != child || status ? 12 : 0;
}

int main(void)
{
	struct rlimit limit;
	char name[] = "/tmp/every_descriptor.XXXXXX", bytes[64];
	int fd = mkstemp(name), failed;

	if (fd < 0 || unlink(name) || getrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	if (limit.rlim_cur > LIMIT) {
		limit.rlim_cur = LIMIT;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (write(fd, TEXT, sizeof(TEXT) - 1) != sizeof(TEXT) - 1)
		return 3;
	for (int other = 3; other < (int)limit.rlim_cur; other++)
		if (other != fd && dup2(fd, other) != other)
			return 4;
	failed = allocate_everywhere();
	if (failed)
		return failed;
	if (pread(fd, bytes, sizeof(bytes), 0) != sizeof(TEXT) - 1) {
		fprintf(stderr, "every_descriptor: somebody else wrote to the file\n");
		return 5;
	}
	closefrom(3);
	failed = allocate_everywhere();
	if (failed)
		return failed + 10;
	for (int other = 3; other < (int)limit.rlim_cur; other++) {
		if (fcntl(other, F_GETFD) >= 0) {
			fprintf(stderr, "every_descriptor: %d is open\n", other);
			return 6;
		}
	}
	ledger_took("take_without_descriptors", LEDGER_ANY, BLOCK_BYTES, 6 * BLOCKS);
	ledger_gave(BLOCK_BYTES, 6 * BLOCKS);
	ledger_print();
	return 0;
}
