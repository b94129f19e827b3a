/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * packaged.c - an inlined function among others; debug_packagings() of places.py has its
 * debugging information in every form
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30721

LEDGER_SITE static void take_packaged(int i)
{
	char *block = ledger_block(malloc(BLOCK_BYTES));

	block[0] = (char)i;
	free(block);
}

__attribute__((always_inline)) static inline void call_inlined(int i)
{
	take_packaged(i);
	__asm__ volatile("");
}

LEDGER_SITE static int call_outer(int i)
{
	volatile int kept = i;

	call_inlined(i);
	return kept;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 10; i++)
		sum += call_outer(i);
	return sum != 45;
}
