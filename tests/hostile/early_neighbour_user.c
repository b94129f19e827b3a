/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * early_neighbour_user.c - the user's own LD_PRELOAD is there, and its early block is good
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define GROWN_BYTES 20023

typedef char *take_function(size_t *);

LEDGER_SITE static char *grow(char *block)
{
	return realloc(block, GROWN_BYTES);
}

int main(void)
{
	take_function *take = (take_function *)dlsym(RTLD_DEFAULT, "early_neighbour_block");
	size_t bytes;
	char *block;

	demand(take);
	block = take(&bytes);
	demand(block && block[bytes - 1] == 'e');
	ledger_took("take_early", "start", bytes, 1);
	block = grow(block);
	demand(block && block[bytes - 1] == 'e');
	ledger_gave(bytes, 1);
	ledger_took("grow", "main", GROWN_BYTES, 1);
	free(block);
	ledger_gave(GROWN_BYTES, 1);
	ledger_print();
	return 0;
}
