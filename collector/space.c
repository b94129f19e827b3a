/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * space.c - see space.h for the contract
 *
 * Invariants
 *   - Stamps are counted up for the whole program and have 64 bits: none comes twice.
 *   - Memory is made before anything changes, so that what fails changes nothing.
 */
#include "collector/space.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_stamp(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void mt_space_init(struct mt_space *space)
{
	*space = (struct mt_space){ .stamp = next_stamp() };
}

static void drop_images(struct mt_space *space)
{
	for (size_t i = 0; i < space->len; i++)
		mt_image_unref(space->ranges[i].image);
	space->len = 0;
}

void mt_space_done(struct mt_space *space)
{
	drop_images(space);
	free(space->ranges);
	*space = (struct mt_space){ 0 };
}

void mt_space_clear(struct mt_space *space)
{
	drop_images(space);
	space->stamp = next_stamp();
}

static int reserve(struct mt_space *space, size_t len)
{
	struct mt_space_range *ranges;
	size_t capacity = space->capacity ? space->capacity : 16;

	while (capacity < len)
		capacity *= 2;
	if (capacity == space->capacity)
		return 0;
	ranges = reallocarray(space->ranges, capacity, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	space->ranges = ranges;
	space->capacity = capacity;
	return 0;
}

/* The first range that ends above the address; len if there is none. */
static size_t first_above(const struct mt_space *space, uint64_t address)
{
	size_t low = 0, high = space->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(struct mt_space *space, size_t at, const struct mt_space_range *range)
{
	memmove(&space->ranges[at + 1], &space->ranges[at],
		(space->len - at) * sizeof(*space->ranges));
	space->ranges[at] = *range;
	if (range->image)
		mt_image_ref(range->image);
	space->len++;
}

/* There is room for one range more.  Returns where one that begins at start belongs. */
static size_t cut_out(struct mt_space *space, uint64_t start, uint64_t end)
{
	size_t at = first_above(space, start), gone;
	struct mt_space_range *range = &space->ranges[at];

	if (at < space->len && range->start < start) {
		/* Its part above end is a range of its own. */
		if (range->end > end) {
			struct mt_space_range rest = *range;

			rest.start = end;
			insert(space, at + 1, &rest);
		}
		range->end = start;
		at++;
	}
	for (gone = at; gone < space->len && space->ranges[gone].end <= end; gone++)
		mt_image_unref(space->ranges[gone].image);
	memmove(&space->ranges[at], &space->ranges[gone],
		(space->len - gone) * sizeof(*space->ranges));
	space->len -= gone - at;
	if (at < space->len && space->ranges[at].start < end)
		space->ranges[at].start = end;
	return at;
}

int mt_space_add(struct mt_space *space, const struct mt_space_range *range)
{
	int r;

	if (range->start >= range->end)
		return -EINVAL;
	r = reserve(space, space->len + 2);
	if (r < 0)
		return r;
	insert(space, cut_out(space, range->start, range->end), range);
	space->stamp = next_stamp();
	return 0;
}

int mt_space_copy(struct mt_space *to, const struct mt_space *from)
{
	struct mt_space_range *ranges;
	size_t capacity = from->len ? from->len : 1;

	ranges = calloc(capacity, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < from->len; i++) {
		ranges[i] = from->ranges[i];
		if (ranges[i].image)
			mt_image_ref(ranges[i].image);
	}
	mt_space_done(to);
	*to = (struct mt_space){
		.ranges = ranges,
		.len = from->len,
		.capacity = capacity,
		.stamp = from->stamp,
	};
	return 0;
}

void mt_space_move(struct mt_space *to, struct mt_space *from)
{
	mt_space_done(to);
	*to = *from;
	mt_space_init(from);
}

const struct mt_space_range *mt_space_find(const struct mt_space *space, uint64_t pc)
{
	size_t at = first_above(space, pc);

	if (at == space->len || space->ranges[at].start > pc)
		return NULL;
	return &space->ranges[at];
}
