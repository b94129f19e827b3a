/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * static_tls.c - loads a library that needs static thread storage, when threads run
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20443
#define THREADS 4

typedef int use_function(int);

static pthread_barrier_t barrier;
static use_function *use;

LEDGER_SITE static void take(void)
{
	free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_END, BYTES, 1);
	ledger_gave(BYTES, 1);
}

static void *work(void *unused)
{
	take();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	demand(use(1) == 0);
	take();
	demand(use(2) == 1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	void *plugin;

	demand(argc > 1 && !pthread_barrier_init(&barrier, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_create(&threads[i], NULL, work, NULL));
	pthread_barrier_wait(&barrier);
	plugin = dlopen(argv[1], RTLD_NOW);
	if (!plugin)
		dprintf(STDERR_FILENO, "%s\n", dlerror());
	demand(plugin);
	use = (use_function *)dlsym(plugin, "static_tls_plugin_use");
	demand(use);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_join(threads[i], NULL));
	ledger_print();
	return 0;
}
