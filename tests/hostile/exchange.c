/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exchange.c - blocks go between the program and a plugin that is bound to
 * another malloc: with RTLD_DEEPBIND to the same heap past the preloaded library, in a link
 * namespace of its own to another heap
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/demand.h"

#define OWN_BYTES 20117
#define ROUNDS 100

static void *take(void)
{
	void *block = malloc(OWN_BYTES);

	demand(block);
	return memset(block, 'o', OWN_BYTES);
}

int main(int argc, char **argv)
{
	int deep = argc > 2 && !strcmp(argv[2], "deep");
	void *plugin, *(*take_there)(void), *(*grow)(void *);
	void (*give)(void *);

	demand(argc > 2);
	plugin = deep ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND)
		      : dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
	demand(plugin);
	take_there = (void *(*)(void))dlsym(plugin, "exchange_plugin_take");
	grow = (void *(*)(void *))dlsym(plugin, "exchange_plugin_grow");
	give = (void (*)(void *))dlsym(plugin, "exchange_plugin_give");
	demand(take_there && grow && give);
	for (int i = 0; i < ROUNDS; i++) {
		char *there = grow(take_there()), *here = take();

		demand(there && there[0] == 'p' && here[OWN_BYTES - 1] == 'o');
		if (deep) {
			give(here);
			free(there);
		} else {
			free(here);
			give(there);
		}
	}
	demand(!dlclose(plugin));
	puts("exchanged");
	return 0;
}
