/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * many_stacks.c - half a million allocations by 2048 stacks
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define FIRST_BYTES 23141
#define SIZES 8
#define EVENTS 500000
#define BITS 11

/* Each bit of path is a call of one or the other: 2^11 stacks. */
LEDGER_SITE static void *left(unsigned path, int depth);
LEDGER_SITE static void *right(unsigned path, int depth);

LEDGER_SITE static void *take_by_path(unsigned path)
{
	return ledger_block(malloc(FIRST_BYTES + path % SIZES));
}

static void *turn(unsigned path, int depth)
{
	if (depth == BITS)
		return take_by_path(path);
	return path >> depth & 1 ? right(path, depth + 1) : left(path, depth + 1);
}

static void *left(unsigned path, int depth)
{
	return turn(path, depth);
}

static void *right(unsigned path, int depth)
{
	return turn(path, depth);
}

int main(void)
{
	size_t counts[SIZES] = { 0 };

	for (unsigned i = 0; i < EVENTS; i++) {
		/* Neighbours differ much. */
		unsigned path = i * 1237 % (1u << BITS);

		free(turn(path, 0));
		counts[path % SIZES]++;
	}
	for (unsigned i = 0; i < SIZES; i++) {
		ledger_took("take_by_path", "main", FIRST_BYTES + i, counts[i]);
		ledger_gave(FIRST_BYTES + i, counts[i]);
	}
	ledger_print();
	return 0;
}
