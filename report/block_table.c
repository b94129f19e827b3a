/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * block_table.c - see block_table.h
 *
 * Invariants
 *   Open addressing with linear probing, never more than three quarters full: a chain of
 *   probes ends at an empty place, and is short.
 *   Between a block's home and its place there is no empty place; removing moves later
 *   blocks back into the hole instead of leaving a mark, so that a table that lives long
 *   does not fill with marks.
 */
#include "report/block_table.h"

#include <errno.h>
#include <stdlib.h>

#include "report/mix.h"

static size_t home(const struct mt_block_table *table, uint64_t address)
{
	return mt_mix(address, table->seed) & (table->room - 1);
}

struct mt_block *mt_block_find(const struct mt_block_table *table, uint64_t address)
{
	if (!table->len)
		return NULL;
	for (size_t i = home(table, address);; i = (i + 1) & (table->room - 1)) {
		if (table->blocks[i].address == address)
			return &table->blocks[i];
		if (!table->blocks[i].address)
			return NULL;
	}
}

static struct mt_block *empty_place(struct mt_block_table *table, uint64_t address)
{
	size_t i = home(table, address);

	while (table->blocks[i].address)
		i = (i + 1) & (table->room - 1);
	return &table->blocks[i];
}

static int double_room(struct mt_block_table *table)
{
	struct mt_block_table wide = *table;

	wide.room = table->room ? table->room * 2 : 8;
	wide.blocks = calloc(wide.room, sizeof(*wide.blocks));
	if (!wide.blocks)
		return -ENOMEM;
	for (size_t i = 0; i < table->room; i++)
		if (table->blocks[i].address)
			*empty_place(&wide, table->blocks[i].address) = table->blocks[i];
	free(table->blocks);
	*table = wide;
	return 0;
}

int mt_block_add(struct mt_block_table *table, uint64_t address, struct mt_block **ret)
{
	struct mt_block *block;

	if (table->len >= table->room / 4 * 3) {
		int err = double_room(table);

		if (err)
			return err;
	}
	block = empty_place(table, address);
	*block = (struct mt_block){ .address = address };
	table->len++;
	*ret = block;
	return 0;
}

void mt_block_remove(struct mt_block_table *table, struct mt_block *block)
{
	size_t mask = table->room - 1;
	size_t hole = (size_t)(block - table->blocks);

	for (size_t i = (hole + 1) & mask; table->blocks[i].address; i = (i + 1) & mask) {
		size_t from = home(table, table->blocks[i].address);

		/* It may move if the hole lies between its home and its place. */
		if (((i - from) & mask) < ((i - hole) & mask))
			continue;
		table->blocks[hole] = table->blocks[i];
		hole = i;
	}
	table->blocks[hole].address = 0;
	table->len--;
}

void mt_block_table_done(struct mt_block_table *table)
{
	free(table->blocks);
	table->blocks = NULL;
	table->room = 0;
	table->len = 0;
}
