/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * drop_root.c - changes root and user, can not be dumped, and goes on allocating, with new
 * threads and a child; nothing appears in the new root
 */
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BEFORE_BYTES 20353
#define AFTER_BYTES 20357
#define TAKEN 100
#define NOBODY 65534

LEDGER_SITE static void take(const char *root, size_t size)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(size)));
	ledger_took(__func__, root, size, TAKEN);
	ledger_gave(size, TAKEN);
}

static void *work(void *unused)
{
	take(LEDGER_END, AFTER_BYTES);
	return unused;
}

int main(void)
{
	pthread_t thread;
	DIR *directory;
	int status, entries = 0;
	pid_t child;

	take(LEDGER_END, BEFORE_BYTES);
	demand(!mkdir("root", 0777) && !chroot("root") && !chdir("/"));
	demand(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	demand(!prctl(PR_SET_DUMPABLE, 0));
	take(LEDGER_END, AFTER_BYTES);
	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		take(LEDGER_END, AFTER_BYTES);
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && status == 0);
	directory = opendir("/");
	demand(directory);
	while (readdir(directory))
		entries++;
	closedir(directory);
	demand(entries == 2);
	ledger_print();
	return 0;
}
