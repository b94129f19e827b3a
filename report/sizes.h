/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * sizes.h - how often each size was asked for
 *
 * Contract
 *   Input:     any size, 0 too.
 *   Ownership: entries lie in the table; a pointer to one is good until the next add.
 *   Errors:    -ENOMEM from add: the table is as it was.
 *   Bounds:    at most 86 bytes for each distinct size.
 */
#include <stddef.h>
#include <stdint.h>

struct mt_size {
	uint64_t size;
	uint64_t allocations; /* 0: this place is empty */
	uint64_t frees;
	uint64_t temporary_allocations;
};

struct mt_sizes {
	struct mt_size *sizes;
	size_t room; /* a power of two, or 0 */
	size_t len;
	uint64_t seed;
};

/* Counts an allocation. */
int mt_sizes_add(struct mt_sizes *sizes, uint64_t size);

/* The entry of a size that was added. */
struct mt_size *mt_sizes_find(const struct mt_sizes *sizes, uint64_t size);

/* Puts the entries at the front, the smallest size first; look-ups end with this. */
void mt_sizes_sort(struct mt_sizes *sizes);

/* All zero but the seed is an empty table, and so is a table after this. */
void mt_sizes_done(struct mt_sizes *sizes);
