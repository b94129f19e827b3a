/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ways_to_end.c - ends, while other threads allocate: by quick_exit, by exit in a thread,
 * by _exit, by the system call, by abort, by a thread when main has left, by return
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

#define BYTES 20147
#define COUNTED 50

static const char *how;

static void take_counted(void)
{
	for (int i = 0; i < COUNTED; i++) {
		void *volatile block = malloc(BYTES);

		demand(block);
		free(block);
	}
}

static void *storm(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		void *volatile block = malloc(300);

		free(block);
	}
	return NULL;
}

static void at_end(void)
{
	take_counted();
	demand(write(STDOUT_FILENO, "handled\n", 8) == 8);
}

static void *end(void *unused)
{
	if (!strcmp(how, "quick_exit"))
		quick_exit(3);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "system_call"))
		syscall(SYS_exit_group, 5);
	if (!strcmp(how, "abort"))
		abort();
	exit(6);
	return unused;
}

int main(int argc, char **argv)
{
	static int stop;
	pthread_t thread;

	demand(argc > 1);
	how = argv[1];
	demand(!setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }));
	demand(!at_quick_exit(at_end) && !atexit(at_end));
	for (int i = 0; i < 2; i++)
		demand(!pthread_create(&thread, NULL, storm, &stop));
	take_counted();
	if (!strcmp(how, "return"))
		return 7;
	demand(!pthread_create(&thread, NULL, end, NULL));
	if (!strcmp(how, "main_leaves"))
		pthread_exit(NULL);
	pause();
	return 8;
}
