/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * long_command.c - a megabyte of arguments, which the image then writes over, as it does with
 * the environment behind them
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20399
#define TAKEN 50
#define WORDS 12
#define WORD_BYTES 100000

LEDGER_SITE static void take_in_image(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

int main(int argc, char **argv)
{
	static char word[WORD_BYTES + 1], *next[WORDS + 2];

	if (argc == 1) {
		next[0] = argv[0];
		for (int i = 1; i <= WORDS; i++)
			next[i] = memset(word, 'w', WORD_BYTES);
		execv("/proc/self/exe", next);
		return 1;
	}
	demand(argc == WORDS + 1 && strlen(argv[WORDS]) == WORD_BYTES);
	take_in_image();
	for (int i = 0; i < argc; i++)
		memset(argv[i], 0x80 + i, strlen(argv[i]));
	for (int i = 0; environ[i]; i++)
		memset(environ[i], '=', strlen(environ[i]));
	take_in_image();
	ledger_print();
	return 0;
}
