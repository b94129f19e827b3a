/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sizes.c - see sizes.h
 *
 * Invariants
 *   Open addressing with linear probing, never more than three quarters full; nothing is removed.
 */
#include "report/sizes.h"

#include <errno.h>
#include <stdlib.h>

#include "report/mix.h"

/* The entry, or the empty place where it belongs. */
static struct mt_size *place(const struct mt_sizes *sizes, uint64_t size)
{
	size_t i = mt_mix(size, sizes->seed) & (sizes->room - 1);

	while (sizes->sizes[i].allocations && sizes->sizes[i].size != size)
		i = (i + 1) & (sizes->room - 1);
	return &sizes->sizes[i];
}

static int double_room(struct mt_sizes *sizes)
{
	struct mt_sizes wide = *sizes;

	wide.room = sizes->room ? sizes->room * 2 : 64;
	wide.sizes = calloc(wide.room, sizeof(*wide.sizes));
	if (!wide.sizes)
		return -ENOMEM;
	for (size_t i = 0; i < sizes->room; i++)
		if (sizes->sizes[i].allocations)
			*place(&wide, sizes->sizes[i].size) = sizes->sizes[i];
	free(sizes->sizes);
	*sizes = wide;
	return 0;
}

int mt_sizes_add(struct mt_sizes *sizes, uint64_t size)
{
	struct mt_size *entry;

	if (sizes->len >= sizes->room / 4 * 3) {
		int err = double_room(sizes);

		if (err)
			return err;
	}
	entry = place(sizes, size);
	if (!entry->allocations) {
		entry->size = size;
		sizes->len++;
	}
	entry->allocations++;
	return 0;
}

struct mt_size *mt_sizes_find(const struct mt_sizes *sizes, uint64_t size)
{
	return place(sizes, size);
}

static int by_size(const void *a, const void *b)
{
	const struct mt_size *x = a, *y = b;

	return (x->size > y->size) - (x->size < y->size);
}

void mt_sizes_sort(struct mt_sizes *sizes)
{
	size_t n = 0;

	for (size_t i = 0; i < sizes->room; i++)
		if (sizes->sizes[i].allocations)
			sizes->sizes[n++] = sizes->sizes[i];
	if (n)
		qsort(sizes->sizes, n, sizeof(*sizes->sizes), by_size);
}

void mt_sizes_done(struct mt_sizes *sizes)
{
	free(sizes->sizes);
	sizes->sizes = NULL;
	sizes->room = 0;
	sizes->len = 0;
}
