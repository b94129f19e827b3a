/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * relative_plugin.c - a plugin by a path that only this process makes true, and not for long:
 * it is closed, and the process is elsewhere, before anybody can look
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"
#include "tests/hostile/exchange_plugin.h"

#define LOADS 20

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
		exchange_plugin_visit(path, "main");
		demand(!chdir("/"));
	}
	ledger_print();
	return 0;
}
