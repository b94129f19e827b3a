/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * split_stacks.c - a recursion whose stack is made of pieces of the heap, as functions need
 * them (-fsplit-stack): in the main thread and in others, never a fault, and no block lost
 */
#include <pthread.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30561
#define DEPTH 400
#define ROUNDS 5
#define THREADS 3

LEDGER_SITE static void take_on_piece(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, LEDGER_ANY, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
}

LEDGER_SITE static int descend(int depth)
{
	volatile char frame[3000];

	frame[depth] = 1;
	take_on_piece();
	return depth ? descend(depth - 1) + frame[depth] : 0;
}

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		if (descend(DEPTH) != DEPTH)
			return (void *)1;
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 3;
	if (work(NULL))
		return 4;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		if (wrong)
			return 4;
	}
	ledger_print();
	return 0;
}
