/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * resolver_plugin.c - an indirect function whose resolver allocates, in the loader's hands
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define RESOLVER_BYTES 20047
#define CHOSEN_BYTES 20051

typedef void *make_function(void);

static void *make_chosen(void)
{
	void *block = malloc(CHOSEN_BYTES);

	__asm__ volatile("");
	return block;
}

LEDGER_SITE static int weigh(void)
{
	void *block = malloc(RESOLVER_BYTES);

	free(block);
	return block != NULL;
}

__attribute__((used)) static make_function *choose(void)
{
	return weigh() ? make_chosen : NULL;
}

void *resolver_plugin_make(void) __attribute__((ifunc("choose")));
