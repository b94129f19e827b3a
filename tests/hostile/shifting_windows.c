/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shifting_windows.c - successive stacks that are hard to tell apart from each other
 *
 * The depth jumps between nothing and beyond the budget, the place by odd numbers of words,
 * the contents change all, or not at all; and what is behind the innermost frame is the
 * same at other places.  Each depth has a size of its own, so a stack that was taken for
 * another shows in the figures by chain.
 */
#include <alloca.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define FIRST_BYTES 23041
#define DEPTHS 24
#define ROUNDS 3000
#define WORDS 48

static size_t counts[DEPTHS];

LEDGER_SITE static void take_at_bottom(int depth)
{
	free(ledger_block(malloc(FIRST_BYTES + (size_t)depth)));
	counts[depth]++;
}

LEDGER_SITE static void descend(int left, int depth, unsigned seed)
{
	volatile unsigned long words[WORDS];

	for (int i = 0; i < WORDS; i++)
		words[i] = seed % 5 ? 0 : (unsigned long)seed * (unsigned)i;
	if (left)
		descend(left - 1, depth, seed * 69069 + 1);
	else
		take_at_bottom(depth);
	if (words[1] == 1)
		abort();
}

LEDGER_SITE static void shift(int depth, size_t words, unsigned seed)
{
	volatile char *gap = alloca(words * 8);

	gap[0] = 1;
	descend(depth, depth, seed);
	if (gap[0] != 1)
		abort();
}

int main(void)
{
	unsigned random = 2463534242;

	for (int i = 0; i < ROUNDS; i++) {
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		for (unsigned again = 0; again <= random % 4; again++)
			shift((int)((random >> 8) % DEPTHS), 1 + (random >> 16) % 90,
			      random % 4 > 1 ? 5 : random + again);
	}
	for (int depth = 0; depth < DEPTHS; depth++) {
		ledger_took("take_at_bottom", LEDGER_ANY, FIRST_BYTES + (size_t)depth,
			    counts[depth]);
		ledger_gave(FIRST_BYTES + (size_t)depth, counts[depth]);
	}
	ledger_print();
	return 0;
}
