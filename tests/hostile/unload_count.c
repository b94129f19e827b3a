/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unload_count.c - a library goes when its last reference does: nobody holds one more
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20123
#define REFERENCES 7

LEDGER_SITE static void take_while_loaded(void)
{
	free(ledger_block(malloc(BYTES)));
}

int main(int argc, char **argv)
{
	void *plugin = NULL;
	int closed = 0;

	demand(argc > 1 && !dlopen(argv[1], RTLD_LAZY | RTLD_NOLOAD));
	for (int i = 0; i < REFERENCES; i++) {
		plugin = dlopen(argv[1], RTLD_LAZY);
		demand(plugin);
		take_while_loaded();
	}
	ledger_took("take_while_loaded", "main", BYTES, REFERENCES);
	ledger_gave(BYTES, REFERENCES);
	/* A look at it is a reference too, where there is something to see. */
	while (dlopen(argv[1], RTLD_LAZY | RTLD_NOLOAD)) {
		demand(closed < REFERENCES && !dlclose(plugin) && !dlclose(plugin));
		closed++;
	}
	demand(closed == REFERENCES);
	ledger_print();
	return 0;
}
