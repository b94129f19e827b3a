/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread_names.c - threads whose names are no text: bytes that are no characters, quotes,
 * separators, control characters, nothing, a character cut in two
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20393
#define TAKEN 5

static const char *const names[] = {
	"",	      "\xc0\x80\xff", "one;two 3",	    "\"\\u0000\"", "\x1b]0;title\a",
	"two\nlines", "\xe2\x82",     "\t\v\f\r",	    " ",	   "(deleted) [x]",
	"\x7f\x01",   "%s%n%d",	      "0123456789abcd\xc3",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

LEDGER_SITE static void take_named(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_END, BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static void *work(void *name)
{
	demand(!prctl(PR_SET_NAME, name));
	take_named();
	return NULL;
}

int main(void)
{
	pthread_t threads[NAMES];

	for (size_t i = 0; i < NAMES; i++)
		demand(!pthread_create(&threads[i], NULL, work, (void *)names[i]));
	for (size_t i = 0; i < NAMES; i++)
		demand(!pthread_join(threads[i], NULL));
	for (size_t i = 0; i < NAMES; i++)
		work((void *)names[i]);
	ledger_print();
	return 0;
}
