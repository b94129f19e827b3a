/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * teach.h - chains into the areas where threads look for theirs, wire/learned.h: the threads of a
 *           process have them of each other, as far as their slots are in one chunk
 *
 * Taught is what a thread can find out by itself, word for word as the unwinder did: a chain
 * whose functions are all left by simple rows and that ends at the outermost one, or at the
 * window's end.  It must not matter what else is mapped: code without unwind information,
 * where the unwinder guesses, and frames of signals are not taught.
 *
 * Contract
 *   Input:     a window that was verified, the space that its process had then, the node that
 *              mt_unwind() made of it, and its record's epoch, which only the record's own
 *              slot is told of.
 *   Ownership: mt_teach_new() gives an object for mt_teach_free(), which takes NULL; segments
 *              are borrowed and have areas.
 *   Errors:    -ENOMEM.  What there is no room for takes another's place.
 *   Threads:   one.
 *   Bounds:    17 bytes for each node of the tree, 72 for each slot; the areas as they are
 *              used.
 */
#include <stdbool.h>
#include <stdint.h>

#include "collector/segments.h"
#include "collector/space.h"
#include "collector/unwind.h"
#include "collector/window.h"

struct mt_teach;

int mt_teach_new(struct mt_segments *segments, struct mt_teach **ret);
void mt_teach_free(struct mt_teach *teach);

/* The node was made of a record of the slot: the next time its thread knows, if it can. */
int mt_teach_chain(struct mt_teach *teach, uint32_t slot, uint32_t epoch,
		   struct mt_unwinder *unwinder, const struct mt_space *space,
		   const struct mt_window *window, uint32_t node);

/* An event of the slot names the node; whether it was ever taught. */
bool mt_teach_used(struct mt_teach *teach, uint32_t slot, uint32_t node);

static inline void mt_teach_freep(struct mt_teach **teach)
{
	mt_teach_free(*teach);
}
