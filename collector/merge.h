/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * merge.h - the cells of all rings, by time, straight from the rings
 *
 * A pass takes the time T, then the heads of all rings, lets its user read whatever else
 * must have arrived by then (the BPF ring of stacks), and hands on every cell below those
 * heads whose time is below T, in the order of time.
 *
 * Why that is the true order for each address: an event is on its ring before another
 * thread can see its effect (wire/ring.h).  Let e2 depend on e1, by an address that one
 * returned and the other freed or the reverse.  Then e1 was on its ring before e2's clock
 * was read, and e1's time is the smaller.  If a pass hands on e2, then time(e2) < T, and T
 * was read before the heads: e1 was below the head that this pass saw, or was handed on
 * before.  So no bound has to be announced by the writers.  Events that do not depend on
 * one another may come out of order by as much as a thread was stopped between its clock
 * and its append.
 *
 * Contract
 *   Input:     rings that the target writes.  Where a head is impossible, or goes back, or a
 *              blob is said to be longer than what is on the ring, that is given up, and the
 *              ring counted as damaged.
 *   Ownership: mt_merge_new() gives an object for mt_merge_free(), which takes NULL;
 *              segments are borrowed.
 *   Errors:    what the callback returned (negative): the pass ends, the cell counts as
 *              handed on.  mt_merge_new(): -ENOMEM.
 *   Threads:   one.
 *   Bounds:    max_cells a pass, and the rest of a blob.  Nothing is buffered: a cell stays in
 *              its ring until it is handed on, and the ring's tail moves then.
 */
#include <stdint.h>

#include "collector/segments.h"

struct mt_merge;

typedef int (*mt_cell_fn)(void *ctx, uint32_t slot, const struct mt_cell *cell);

int mt_merge_new(struct mt_segments *segments, struct mt_merge **ret);
void mt_merge_free(struct mt_merge *merge);

/* First half of a pass: takes the heads.  Call after T was read, with a full fence. */
void mt_merge_heads(struct mt_merge *merge);

/* Second half; returns the number of cells handed on. */
int64_t mt_merge_cells(struct mt_merge *merge, uint64_t below_ns, uint64_t max_cells, mt_cell_fn fn,
		       void *ctx);

/*
 * For the callback of a BLOB, whose cells are handed on as one: copies the record, as many
 * bytes as the cell's word says.
 */
void mt_merge_copy_blob(const struct mt_merge *merge, void *ret);

/* The fullest ring that the last pass found, in bytes. */
uint64_t mt_merge_fullest_bytes(const struct mt_merge *merge);

/* All cells below this were handed on when the last pass ended. */
uint64_t mt_merge_reached_ns(const struct mt_merge *merge);

/* Bytes of the slot's ring that were handed on, or given up, ever. */
uint64_t mt_merge_tail(const struct mt_merge *merge, uint32_t slot);

/* Rings of which something was given up because of their heads. */
uint64_t mt_merge_damaged(const struct mt_merge *merge);

/* Instead of a pass: gives up what is on all rings, so that no thread waits for room. */
void mt_merge_skip(struct mt_merge *merge);

static inline void mt_merge_freep(struct mt_merge **merge)
{
	mt_merge_free(*merge);
}
