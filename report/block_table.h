/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * block_table.h - the live blocks of one process, by address
 *
 * Contract
 *   Input:     addresses are not 0.
 *   Ownership: blocks lie in the table; a pointer to one is good until the next add or
 *              remove.
 *   Errors:    -ENOMEM from add: the table is as it was.
 *   Bounds:    the table is half to 3/4 full when most blocks are live: 80 bytes a
 *              block at worst, and hardly more while it grows.
 */
#include <stddef.h>
#include <stdint.h>

struct mt_block {
	uint64_t address; /* 0: this place is empty */
	uint64_t size;
	uint64_t time_ns;
	uint32_t chain;	   /* of its allocation, in struct mt_replay */
	uint32_t thread;   /* that allocated it */
	uint32_t pending;  /* the thread that has begun to realloc it, or 0 */
	uint32_t implicit; /* earlier blocks here whose free has not been seen yet */
};

struct mt_block_table {
	struct mt_block *blocks;
	size_t room;
	size_t len;
	uint64_t seed;
};

/* NULL: not live. */
struct mt_block *mt_block_find(const struct mt_block_table *table, uint64_t address);

/* The address is not in the table.  All fields but the address are 0. */
int mt_block_add(struct mt_block_table *table, uint64_t address, struct mt_block **ret);

void mt_block_remove(struct mt_block_table *table, struct mt_block *block);

/* All zero but the seed is an empty table, and so is a table after this. */
void mt_block_table_done(struct mt_block_table *table);
