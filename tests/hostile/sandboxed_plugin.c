/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sandboxed_plugin.c - allocates, with thread-local data that the loader allocates at its first
 * use
 */
#include <stdlib.h>

#include "fixtures/ledger.h"

#define DATA_BYTES 80

static __thread char data[DATA_BYTES];

LEDGER_SITE static void take_in_plugin(size_t pairs, size_t bytes, void *touch(void *block))
{
	for (size_t i = 0; i < pairs; i++)
		free(touch(malloc(bytes)));
}

/* What touch() gets it writes to. */
void sandboxed_plugin_use(size_t pairs, size_t bytes, void *touch(void *block))
{
	data[pairs % DATA_BYTES]++;
	take_in_plugin(pairs, bytes, touch);
	data[bytes % DATA_BYTES]++;
}
