/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hardened.c - the same few calls, built in the ways that distributions and profilers build
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23131
#define BLOCKS 20

LEDGER_SITE static void *take_hardened(char *text)
{
	/* A buffer that a stack protector guards. */
	snprintf(text, 16, "%d", BLOCK_BYTES);
	return ledger_block(malloc(BLOCK_BYTES));
}

LEDGER_SITE static void in_between(void)
{
	char text[16];

	free(take_hardened(text));
	if (text[0] != '2')
		exit(2);
}

/* Of -finstrument-functions: called for each function, and allocates nothing. */
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller);
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller);

static volatile size_t calls;

void __cyg_profile_func_enter(void *function, void *caller)
{
	calls += function != caller;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	calls += function != caller;
}

int main(void)
{
	for (int i = 0; i < BLOCKS; i++)
		in_between();
	ledger_took("take_hardened", "main", BLOCK_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS);
	ledger_print();
	return 0;
}
