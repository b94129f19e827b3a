/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preinit_dlsym.c - allocates before every constructor, by way of dlsym and by itself
 *
 * A failing dlsym() allocates in the C library.  Here that is the first allocation of the
 * process, out of DT_PREINIT_ARRAY; later, an allocation between a failing dlsym() and
 * dlerror() must leave the pending message alone.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"

#define FIRST_BYTES 20011
#define BETWEEN_BYTES 20012
#define MOVED_BYTES 20013
#define ROUNDS 150

static void *first;

LEDGER_SITE static void *take_first(void)
{
	return calloc(1, FIRST_BYTES);
}

static void start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	dlsym(RTLD_DEFAULT, "not_to_be_found");
	first = take_first();
	dlerror();
}

__attribute__((section(".preinit_array"), used)) static void (*const entry)(int, char **,
									    char **) = start;

LEDGER_SITE static void *between(void)
{
	void *block = ledger_block(malloc(BETWEEN_BYTES));

	return ledger_block(realloc(block, MOVED_BYTES));
}

int main(void)
{
	char name[32];
	const char *said;
	void *block;
	int i;

	if (!first)
		return 1;
	ledger_took("take_first", "start", FIRST_BYTES, 1);
	for (i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "no_symbol_%d", i);
		if (dlsym(i & 1 ? RTLD_NEXT : RTLD_DEFAULT, name))
			return 2;
		block = between();
		said = dlerror();
		if (!said || !strstr(said, name)) {
			fprintf(stderr, "dlerror says %s, not of %s\n", said, name);
			return 3;
		}
		free(block);
	}
	ledger_took("between", "main", BETWEEN_BYTES, ROUNDS);
	ledger_gave(BETWEEN_BYTES, ROUNDS);
	ledger_took("between", "main", MOVED_BYTES, ROUNDS);
	ledger_gave(MOVED_BYTES, ROUNDS);
	ledger_print();
	return 0;
}
