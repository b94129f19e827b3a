/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * assembly_frames.c - callers without unwinding information: with a frame pointer the chain
 * goes on, or ends and says so; with something else in its place, which looks like a chain
 * of frames, it ends, and no caller is invented
 */
#include <stdint.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define FRAME_BYTES 30691
#define NO_FRAME_BYTES 30693
#define LINKS 64

void bare_with_frame(void (*call)(void));
void *bare_without_frame(void (*call)(void), void *bait);

LEDGER_SITE static void take_below_frame(void)
{
	free(ledger_block(malloc(FRAME_BYTES)));
	ledger_took(__func__, LEDGER_ANY, FRAME_BYTES, 1);
	ledger_gave(FRAME_BYTES, 1);
}

LEDGER_SITE static void take_below_none(void)
{
	free(ledger_block(malloc(NO_FRAME_BYTES)));
	ledger_took(__func__, LEDGER_ANY, NO_FRAME_BYTES, 1);
	ledger_gave(NO_FRAME_BYTES, 1);
}

/* Is in no chain: nothing calls it. */
__attribute__((used)) LEDGER_SITE static void never_called(void)
{
	take_below_none();
}

/* Looks like frames: links upwards, and addresses in a real function, behind no call. */
static void lay_bait(uintptr_t *bait)
{
	for (int i = 0; i < LINKS; i++) {
		bait[2 * i] = (uintptr_t)&bait[2 * (i + 1) % (2 * LINKS)];
		bait[2 * i + 1] = (uintptr_t)never_called + 5;
	}
}

int main(void)
{
	static uintptr_t elsewhere[2 * LINKS];
	uintptr_t here[2 * LINKS];

	lay_bait(elsewhere);
	lay_bait(here);
	for (int i = 0; i < 20; i++) {
		bare_with_frame(take_below_frame);
		if (bare_without_frame(take_below_none, elsewhere) != elsewhere ||
		    bare_without_frame(take_below_none, here) != here)
			return 4;
	}
	ledger_print();
	return 0;
}
