/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * openmp_loops.c - a parallel loop that allocates, on OpenMP's threads
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BYTES 20269
#define ROUNDS 3000

LEDGER_SITE static int take_in_loop(int i)
{
	char *block = ledger_block(malloc(BYTES));
	int right;

	block[i] = (char)i;
	right = block[i] == (char)i;
	free(block);
	return right;
}

int main(void)
{
	int sum = 0;

#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum) num_threads(12)
	for (int i = 0; i < ROUNDS; i++)
		sum += take_in_loop(i);
	if (sum != ROUNDS)
		return 1;
	ledger_took("take_in_loop", LEDGER_END, BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
	ledger_print();
	return 0;
}
