/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exchange_plugin.c - takes, grows and gives back blocks with the malloc that it is bound to
 */
#include <stdlib.h>
#include <string.h>

#define PLUGIN_BYTES 20107
#define GROWN_BYTES 20113

void *exchange_plugin_take(void)
{
	void *block = malloc(PLUGIN_BYTES);

	return block ? memset(block, 'p', PLUGIN_BYTES) : NULL;
}

void *exchange_plugin_grow(void *block)
{
	return realloc(block, GROWN_BYTES);
}

void exchange_plugin_give(void *block)
{
	free(block);
}
