/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * passed_on_blocks.c - threads grow and shrink blocks and pass them on, so that an address
 * which one's realloc() gives up is another's the next moment; in the order of events every
 * free is of a block that is live
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define SMALL_BYTES 30553
#define LARGE_BYTES 60557
#define THREADS 4
#define ROUNDS 15000
#define PLACES 8

static char *places[PLACES];

static size_t size_of(const char *block)
{
	return block[0] ? LARGE_BYTES : SMALL_BYTES;
}

static char *marked(char *block, int large)
{
	((char *)ledger_block(block))[0] = (char)large;
	return block;
}

static void *work(void *seed)
{
	uint32_t number = (uint32_t)(uintptr_t)seed * 2654435761U + 1;
	size_t taken[2] = { 1, 0 }, given[2] = { 0, 0 };
	char *block = marked(malloc(SMALL_BYTES), 0);

	for (int i = 0; i < ROUNDS; i++) {
		int large = !block[0];

		given[!large]++;
		taken[large]++;
		block = marked(realloc(block, large ? LARGE_BYTES : SMALL_BYTES), large);
		number = number * 1664525 + 1013904223;
		block = __atomic_exchange_n(&places[number >> 29], block, __ATOMIC_ACQ_REL);
		if (block)
			continue;
		block = marked(malloc(SMALL_BYTES), 0);
		taken[0]++;
	}
	given[size_of(block) == LARGE_BYTES]++;
	free(block);
	ledger_took(NULL, NULL, SMALL_BYTES, taken[0]);
	ledger_took(NULL, NULL, LARGE_BYTES, taken[1]);
	ledger_gave(SMALL_BYTES, given[0]);
	ledger_gave(LARGE_BYTES, given[1]);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PLACES; i++) {
		if (!places[i])
			continue;
		ledger_gave(size_of(places[i]), 1);
		free(places[i]);
	}
	ledger_print();
	return 0;
}
