/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * learned.h - finds the chain of a stack among those that the collector has taught
 *
 * Contract
 *   Input:     what wire/learned.h says of a chunk, which only the collector can write; a
 *              window all of whose words can be read, shift bytes behind where they were.  The
 *              words are those of a live stack and may be anything.
 *   Ownership: the trail is the slot's, memory that is zero at first and nobody else's.
 *   Errors:    none: what is not known is not found.
 *   Threads:   each with its own slot and trail.  Who finds the trail in use, in a handler,
 *              finds no chain.
 *   Bounds:    MT_LEARNED_FRAMES frames; no lock, no allocation, no system call.
 */
#include <stdbool.h>
#include <stdint.h>

#include "wire/learned.h"

#pragma GCC visibility push(hidden)

struct mt_trail;

struct mt_learned_window {
	uint64_t start, end;
	uint64_t shift;
	uint32_t epoch; /* as it was before the words are read, but those that were copied */
};

/* Of a window. */
struct mt_chain {
	uint64_t key;	/* two that are not the same have not the same; 0: nobody knows */
	uint32_t epoch; /* in which that is so: the window's */
	uint32_t name;	/* for an event, of one that was taught */
};

/* For who maps it. */
uint64_t mt_trail_bytes(void);

/* The slot has another owner, or one that left a look-up for good. */
void mt_trail_forget(struct mt_trail *trail);

/* The start of the window that is being looked up, or was when its frames were left; or 0. */
uint64_t mt_trail_in_use(const struct mt_trail *trail);

/*
 * Whether the chain is among those that were taught.  Where it is not, but all of its rows are, it
 * has a key.  index: of the slot in its chunk.
 */
bool mt_learned_chain(const struct mt_learned *learned, uint32_t index, struct mt_trail *trail,
		      const struct mt_learned_window *window, struct mt_chain *ret);

#pragma GCC visibility pop
