/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * growing_tree.c - four processes start children all the time; most live a moment only
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 23101
#define STEMS 4
#define CHILDREN 60
#define BLOCKS 50

LEDGER_SITE static void *take_in_leaf(void)
{
	return ledger_block(malloc(BLOCK_BYTES));
}

static void live(void)
{
	void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = take_in_leaf();
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	_exit(0);
}

/* Up to eight at a time; every other is waited for by its number. */
static int grow(void)
{
	int alive = 0, status;

	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (child == 0)
			live();
		if (child < 0)
			return 2;
		if (++alive < 8)
			continue;
		if (waitpid(i % 2 ? child : -1, &status, 0) < 0 || status)
			return 3;
		alive--;
	}
	for (; alive; alive--)
		if (wait(&status) < 0 || status)
			return 4;
	return 0;
}

int main(void)
{
	int status;

	for (int i = 0; i < STEMS; i++) {
		pid_t stem = fork();

		if (stem == 0)
			_exit(grow());
		if (stem < 0)
			return 5;
	}
	for (int i = 0; i < STEMS; i++)
		if (wait(&status) < 0 || status)
			return 6;
	ledger_took("take_in_leaf", "main", BLOCK_BYTES, (size_t)STEMS * CHILDREN * BLOCKS);
	ledger_gave(BLOCK_BYTES, (size_t)STEMS * CHILDREN * BLOCKS);
	ledger_print();
	return 0;
}
