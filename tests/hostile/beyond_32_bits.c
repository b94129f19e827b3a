/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * beyond_32_bits.c - sizes, sums and alignments that need more than 32 bits
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define HUGE_BYTES 5368732061ULL
#define CLEARED_BYTES 3221248673ULL
#define ALIGNED_BYTES 23061
#define ALIGNMENT (1ULL << 30)
#define ROUNDS 500

LEDGER_SITE static void *take_huge(void)
{
	return malloc(HUGE_BYTES);
}

int main(void)
{
	void *block;

	for (int i = 0; i < ROUNDS; i++) {
		char *huge = take_huge();

		if (!huge) {
			fprintf(stderr, "beyond_32_bits: no address space\n");
			return 2;
		}
		huge[HUGE_BYTES - 1] = 1;
		free(huge);
	}
	ledger_took("take_huge", "main", HUGE_BYTES, ROUNDS);
	ledger_gave(HUGE_BYTES, ROUNDS);

	block = calloc(CLEARED_BYTES, 1);
	if (!block)
		return 3;
	free(block);
	ledger_took(NULL, NULL, CLEARED_BYTES, 1);
	ledger_gave(CLEARED_BYTES, 1);

	if (posix_memalign(&block, ALIGNMENT, ALIGNED_BYTES) || (uintptr_t)block % ALIGNMENT)
		return 4;
	free(block);
	ledger_took(NULL, NULL, ALIGNED_BYTES, 1);
	ledger_gave(ALIGNED_BYTES, 1);
	ledger_print();
	return 0;
}
