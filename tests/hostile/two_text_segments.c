/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * two_text_segments.c - functions in two executable segments that call each other, one of
 * them far from where its file has it
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define FAR_BYTES 30661
#define NEAR_BYTES 30663
#define FAR __attribute__((section(".far_text")))

FAR LEDGER_SITE static void take_far(void)
{
	free(ledger_block(malloc(FAR_BYTES)));
	ledger_took(__func__, "call_far", FAR_BYTES, 1);
	ledger_gave(FAR_BYTES, 1);
}

LEDGER_SITE static void take_near(void)
{
	free(ledger_block(malloc(NEAR_BYTES)));
	ledger_took(__func__, "call_near", NEAR_BYTES, 1);
	ledger_gave(NEAR_BYTES, 1);
}

LEDGER_SITE static void call_far(void)
{
	volatile char frame[300];

	frame[0] = 1;
	take_far();
	frame[1] = frame[0];
}

FAR LEDGER_SITE static void call_near(void)
{
	volatile char frame[700];

	frame[0] = 1;
	take_near();
	frame[1] = frame[0];
}

int main(void)
{
	for (int i = 0; i < 50; i++) {
		call_far();
		call_near();
	}
	ledger_print();
	return 0;
}
