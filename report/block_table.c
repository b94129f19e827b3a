/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * block_table.c - see block_table.h
 *
 * Invariants
 *   Open addressing with linear probing, never more than three quarters full: a chain of
 *   probes ends at an empty place, and is short.
 *   Homes are in the order of the hashes, whatever the room is.  So the table can grow by
 *   less than to twice its room, and when it does, what was moved lies at the front of the
 *   old places and of the new: the old ones are given back meanwhile.
 *   Between a block's home and its place there is no empty place; removing moves later
 *   blocks back into the hole instead of leaving a mark, so that a table that lives long
 *   does not fill with marks.
 */
#include "report/block_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "report/mix.h"

#define FIRST_ROOM 8
/* A large page. */
#define PAGE_BYTES ((uintptr_t)2 * 1024 * 1024)

static uintptr_t next_page(const void *place)
{
	return ((uintptr_t)place | (PAGE_BYTES - 1)) + 1;
}

static size_t home(const struct mt_block_table *table, uint64_t address)
{
	return (size_t)((unsigned __int128)mt_mix(address, table->seed) * table->room >> 64);
}

static size_t after(const struct mt_block_table *table, size_t place)
{
	return place + 1 < table->room ? place + 1 : 0;
}

/* How many places place is behind from. */
static size_t distance(const struct mt_block_table *table, size_t from, size_t place)
{
	return place >= from ? place - from : place + table->room - from;
}

struct mt_block *mt_block_find(const struct mt_block_table *table, uint64_t address)
{
	if (!table->len)
		return NULL;
	for (size_t i = home(table, address);; i = after(table, i)) {
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
		i = after(table, i);
	return &table->blocks[i];
}

/* What is looked at here and there is found sooner on few pages.  A failure costs time. */
static void ask_for_large_pages(const struct mt_block_table *table)
{
	uintptr_t start = next_page(table->blocks);
	uintptr_t end = next_page(table->blocks + table->room) - PAGE_BYTES;

	if (start < end)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Gives back the page at *done, if it lies before the place that is moved next.  A failure
 * costs memory, until all is freed. */
static void give_back(uintptr_t *done, const struct mt_block *place)
{
	if (*done + PAGE_BYTES > (uintptr_t)place)
		return;
	madvise((void *)*done, PAGE_BYTES, MADV_DONTNEED);
	*done += PAGE_BYTES;
}

static int grow(struct mt_block_table *table)
{
	struct mt_block_table wide = *table;
	uintptr_t done = next_page(table->blocks);

	wide.room = table->room ? table->room + table->room / 2 : FIRST_ROOM;
	wide.blocks = calloc(wide.room, sizeof(*wide.blocks));
	if (!wide.blocks)
		return -ENOMEM;
	ask_for_large_pages(&wide);
	for (size_t i = 0; i < table->room; i++) {
		const struct mt_block *block = &table->blocks[i];

		give_back(&done, block);
		if (block->address)
			*empty_place(&wide, block->address) = *block;
	}
	free(table->blocks);
	*table = wide;
	return 0;
}

int mt_block_add(struct mt_block_table *table, uint64_t address, struct mt_block **ret)
{
	struct mt_block *block;

	if (table->len >= table->room / 4 * 3) {
		int err = grow(table);

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
	size_t hole = (size_t)(block - table->blocks);

	for (size_t i = after(table, hole); table->blocks[i].address; i = after(table, i)) {
		size_t from = home(table, table->blocks[i].address);

		/* It may move if the hole lies between its home and its place. */
		if (distance(table, from, i) < distance(table, hole, i))
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
