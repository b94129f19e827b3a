/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * early_neighbour.c - preloaded by the user, before memtrack: takes a block in its
 * constructor, which the program gives back
 */
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"

#define EARLY_BYTES 20021

static char *early;

LEDGER_SITE static void *take_early(void)
{
	return malloc(EARLY_BYTES);
}

__attribute__((constructor(101))) static void start(void)
{
	early = take_early();
	if (early)
		memset(early, 'e', EARLY_BYTES);
	for (size_t i = 1; i < 40; i++)
		free(realloc(calloc(i, 3), i));
}

char *early_neighbour_block(size_t *ret_bytes)
{
	*ret_bytes = EARLY_BYTES;
	return early;
}
