/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * descriptor_table.c - nothing is open that the program did not open, before and after it
 * closes all there could be, in threads, children and the next image
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20287
#define ROUNDS 1000

LEDGER_SITE static void take(void)
{
	for (int i = 0; i < ROUNDS; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_ANY, BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
}

static void *work(void *unused)
{
	take();
	return unused;
}

static void look(void)
{
	DIR *directory = opendir("/proc/self/fd");
	char path[64], target[256] = "";
	struct dirent *entry;

	demand(directory && dirfd(directory) == 3);
	while ((entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd <= 3)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		demand(readlink(path, target, sizeof(target) - 1) > 0);
		dprintf(STDERR_FILENO, "descriptor %d is %s\n", fd, target);
		_exit(DEMAND_STATUS);
	}
	closedir(directory);
}

static void use_all(void)
{
	pthread_t thread;
	int status;
	pid_t child;

	take();
	look();
	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
	look();
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		take();
		look();
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	look();
}

int main(int argc, char **argv)
{
	char self[] = "/proc/self/exe", again[] = "again", *next[] = { argv[0], again, NULL };

	look();
	use_all();
	demand(syscall(SYS_close_range, 3, ~0U, 0) == 0);
	use_all();
	ledger_print();
	if (argc == 1)
		execv(self, next);
	return argc == 1;
}
