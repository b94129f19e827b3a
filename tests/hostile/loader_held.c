/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loader_held.c - a thread holds the loader's lock and waits for others, which
 * allocate for the first time: in dl_iterate_phdr(), and in a constructor that dlopen() runs
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20441
#define ROUNDS 30

LEDGER_SITE static void *take_in_thread(void *unused)
{
	free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_END, BYTES, 1);
	ledger_gave(BYTES, 1);
	return unused;
}

/* The plugin's constructor finds it by its name. */
void loader_held_wait_for_thread(void)
{
	pthread_t thread;

	demand(!pthread_create(&thread, NULL, take_in_thread, NULL));
	demand(!pthread_join(thread, NULL));
}

static int visit(struct dl_phdr_info *info, size_t size, void *visited)
{
	(void)info;
	(void)size;
	loader_held_wait_for_thread();
	*(int *)visited += 1;
	return *(int *)visited == 3;
}

int main(int argc, char **argv)
{
	demand(argc > 1);
	for (int i = 0; i < ROUNDS; i++) {
		int visited = 0;
		void *plugin = dlopen(argv[1], RTLD_NOW);

		demand(plugin);
		dl_iterate_phdr(visit, &visited);
		demand(visited == 3 && !dlclose(plugin));
	}
	ledger_print();
	return 0;
}
