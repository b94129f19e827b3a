/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * resolver_user.c - calls an indirect function, bound when it is called first
 */
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define RESOLVER_BYTES 20047
#define CHOSEN_BYTES 20051
#define ROUNDS 10

void *resolver_plugin_make(void);

int main(void)
{
	for (int i = 0; i < ROUNDS; i++)
		free(ledger_block(resolver_plugin_make()));
	ledger_took("make_chosen", "main", CHOSEN_BYTES, ROUNDS);
	ledger_gave(CHOSEN_BYTES, ROUNDS);
	/* Once for each reference: how many there are is the linker's. */
	ledger_took("weigh", LEDGER_ANY, RESOLVER_BYTES, 1);
	ledger_gave(RESOLVER_BYTES, 1);
	ledger_print();
	return 0;
}
