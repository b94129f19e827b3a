/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * self_called.c - takes blocks by way of self_calling_malloc.c, each of which is one block,
 * however many functions had a part in it
 */
#include <alloca.h>
#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20549
#define GROWN_BYTES 20551
#define ARRAY_BYTES (3 * 6857)
#define ZEROED_BYTES (7 * 2939)
#define ALIGNED_BYTES 20593
#define ASKED_BYTES 20599
#define OBJECT_BYTES 20611
#define KEPT_BYTES 20627
#define ROUNDS 100

LEDGER_SITE static void *take(void)
{
	return ledger_block(malloc(BYTES));
}

LEDGER_SITE static void *grow(void *block)
{
	return ledger_block(realloc(block, GROWN_BYTES));
}

LEDGER_SITE static void *grow_array(void *block)
{
	return ledger_block(reallocarray(block, 3, ARRAY_BYTES / 3));
}

LEDGER_SITE static void *take_zeroed(void)
{
	return ledger_block(calloc(7, ZEROED_BYTES / 7));
}

LEDGER_SITE static void *take_aligned(void)
{
	return ledger_block(aligned_alloc(64, ALIGNED_BYTES));
}

LEDGER_SITE static void *ask_aligned(void)
{
	void *block;

	demand(posix_memalign(&block, 256, ASKED_BYTES) == 0);
	return block;
}

/* Deeper in the stack than whoever leaves. */
LEDGER_SITE static void give_deep(void *block)
{
	volatile char *deep = alloca(1000);

	deep[0] = 1;
	free(block);
	deep[1] = 1;
}

/* A block that a realloc() failed to move, and another left by a jump, is still there. */
LEDGER_SITE static void fail_and_leave(jmp_buf **leave)
{
	void *volatile block = ledger_block(malloc(KEPT_BYTES));
	volatile size_t too_much = SIZE_MAX / 2 + 1;
	jmp_buf here;

	demand(!realloc(block, too_much));
	if (!setjmp(here)) {
		*leave = &here;
		block = realloc(block, GROWN_BYTES);
		demand(0);
	}
	*leave = NULL;
	give_deep(block);
}

LEDGER_SITE static void as_object(void)
{
	void *(*make)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
	void (*end)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");

	demand(make && end);
	end(ledger_block(make(OBJECT_BYTES)));
}

int main(void)
{
	jmp_buf **leave = dlsym(RTLD_DEFAULT, "self_calling_malloc_leave");

	demand(leave);
	for (int i = 0; i < ROUNDS; i++) {
		free(grow_array(grow(take())));
		free(grow(NULL));
		free(take_zeroed());
		free(take_aligned());
		free(ask_aligned());
		as_object();
		fail_and_leave(leave);
	}
	ledger_took("take", "main", BYTES, ROUNDS);
	ledger_took("grow", "main", GROWN_BYTES, 2 * ROUNDS);
	ledger_took("grow_array", "main", ARRAY_BYTES, ROUNDS);
	ledger_took("take_zeroed", "main", ZEROED_BYTES, ROUNDS);
	ledger_took("take_aligned", "main", ALIGNED_BYTES, ROUNDS);
	ledger_took("ask_aligned", "main", ASKED_BYTES, ROUNDS);
	ledger_took("as_object", "main", OBJECT_BYTES, ROUNDS);
	ledger_took("fail_and_leave", "main", KEPT_BYTES, ROUNDS);
	ledger_gave(BYTES, ROUNDS);
	ledger_gave(GROWN_BYTES, 2 * ROUNDS);
	ledger_gave(ARRAY_BYTES, ROUNDS);
	ledger_gave(ZEROED_BYTES, ROUNDS);
	ledger_gave(ALIGNED_BYTES, ROUNDS);
	ledger_gave(ASKED_BYTES, ROUNDS);
	ledger_gave(OBJECT_BYTES, ROUNDS);
	ledger_gave(KEPT_BYTES, ROUNDS);
	ledger_print();
	return 0;
}
