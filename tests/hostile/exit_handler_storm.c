/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit_handler_storm.c - a thousand exit handlers, of atexit() and on_exit(), registered by
 * a constructor: the C library allocates for them under its lock; they run in reverse
 */
#include <stdlib.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define HANDLERS 1000
#define BYTES 20039

static long left = HANDLERS;

LEDGER_SITE static void take_at_exit(void)
{
	free(ledger_block(malloc(BYTES)));
	if (--left)
		return;
	ledger_took(__func__, "main", BYTES, HANDLERS);
	ledger_gave(BYTES, HANDLERS);
	ledger_print();
}

static void plain(void)
{
	demand(left % 2 == 1);
	take_at_exit();
}

static void numbered(int status, void *number)
{
	demand(status == 0 && (long)number == left - 1);
	take_at_exit();
}

__attribute__((constructor)) static void start(void)
{
	for (long i = 0; i < HANDLERS; i++)
		demand(!(i % 2 ? on_exit(numbered, (void *)i) : atexit(plain)));
}

int main(void)
{
	exit(0);
}
