/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * paced.c - ten allocations, 10 ms apart; for a look at the times that are recorded
 */
#include <stdlib.h>
#include <time.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23031
#define BLOCKS 10

LEDGER_SITE static void *take_in_time(void)
{
	return ledger_block(malloc(BLOCK_BYTES));
}

int main(void)
{
	const struct timespec pace = { .tv_nsec = 10 * 1000000 };
	void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = take_in_time();
		if (nanosleep(&pace, NULL))
			return 2;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	ledger_took("take_in_time", "main", BLOCK_BYTES, BLOCKS);
	ledger_gave(BLOCK_BYTES, BLOCKS);
	ledger_print();
	return 0;
}
