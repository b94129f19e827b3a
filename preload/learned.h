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

/* For who maps it. */
uint64_t mt_trail_bytes(void);

/* The slot has another owner, or one that left a look-up for good. */
void mt_trail_forget(struct mt_trail *trail);

/* The start of the window that is being looked up, or was when its frames were left; or 0. */
uint64_t mt_trail_in_use(const struct mt_trail *trail);

/* The name of the chain, for an event; index: of the slot in its chunk. */
bool mt_learned_chain(const struct mt_learned *learned, uint32_t index, struct mt_trail *trail,
		      const struct mt_learned_window *window, uint32_t *ret_name);

#pragma GCC visibility pop
