/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * exchange_plugin.h - one load of exchange_plugin.c, which takes a block, for the ledger
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define EXCHANGE_PLUGIN_BYTES 20107 /* as there */

/* path: the plugin's; end: the outermost function of the chains, as of ledger_took(). */
static void exchange_plugin_visit(const char *path, const char *end)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void *(*take)(void);

	demand(plugin);
	take = (void *(*)(void))dlsym(plugin, "exchange_plugin_take");
	demand(take);
	free(take());
	ledger_took("exchange_plugin_take", end, EXCHANGE_PLUGIN_BYTES, 1);
	ledger_gave(EXCHANGE_PLUGIN_BYTES, 1);
	demand(!dlclose(plugin));
}
