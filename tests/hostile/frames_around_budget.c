/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frames_around_budget.c - frames of all sizes about a budget's
 * (frames_around_budget BUDGET_BYTES)
 *
 * Whether such a chain is cut follows from the stack's place; where it is not it must be
 * whole.  Of a frame of half a budget it is, of one that is larger it is not.
 */
#include <alloca.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define HALF_BYTES 30481
#define NEAR_BYTES 30483
#define BEYOND_BYTES 30485
#define AROUND 1200

LEDGER_SITE static void take_half(void)
{
	free(ledger_block(malloc(HALF_BYTES)));
	ledger_took(__func__, "main", HALF_BYTES, 1);
	ledger_gave(HALF_BYTES, 1);
}

LEDGER_SITE static void take_near(void)
{
	free(ledger_block(malloc(NEAR_BYTES)));
	ledger_took(__func__, LEDGER_ANY, NEAR_BYTES, 1);
	ledger_gave(NEAR_BYTES, 1);
}

LEDGER_SITE static void take_beyond(void)
{
	free(ledger_block(malloc(BEYOND_BYTES)));
	ledger_took(__func__, LEDGER_CUT, BEYOND_BYTES, 1);
	ledger_gave(BEYOND_BYTES, 1);
}

/* Whatever the frame holds, none of it is taken for a return address. */
LEDGER_SITE static void with_frame(size_t bytes, void (*take)(void))
{
	void *volatile *frame = alloca(bytes);

	for (size_t i = 0; i < bytes / sizeof(*frame); i++)
		frame[i] = (void *)abort;
	take();
	frame[0] = NULL;
}

int main(int argc, char **argv)
{
	size_t budget = ledger_number(argc > 1 ? argv[1] : NULL, 8192);

	for (size_t i = 0; i < 2 * AROUND; i += 16) {
		with_frame(budget / 2, take_half);
		with_frame(budget - AROUND + i, take_near);
		with_frame(budget + i, take_beyond);
	}
	ledger_print();
	return 0;
}
