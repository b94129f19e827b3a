/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * relative_plugin.c - a plugin by a path that only this process makes true, and not for long:
 * it is closed, and the process is elsewhere, before anybody can look
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20107 /* exchange_plugin.c's */
#define LOADS 20

static void take_from(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void *(*take)(void);

	demand(plugin);
	take = (void *(*)(void))dlsym(plugin, "exchange_plugin_take");
	demand(take);
	free(take());
	ledger_took("exchange_plugin_take", "main", BYTES, 1);
	ledger_gave(BYTES, 1);
	demand(!dlclose(plugin));
}

int main(int argc, char **argv)
{
	static char place[PATH_MAX], path[PATH_MAX + 2];
	char *name;

	demand(argc > 1 && strlen(argv[1]) < sizeof(place));
	strcpy(place, argv[1]);
	name = strrchr(place, '/');
	demand(name);
	*name++ = '\0';
	snprintf(path, sizeof(path), "./%s", name);
	for (int i = 0; i < LOADS; i++) {
		demand(!chdir(place));
		take_from(path);
		demand(!chdir("/"));
	}
	ledger_print();
	return 0;
}
