/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * arena.h - blocks and events from before the real functions and the run are known
 *
 * Contract
 *   Input:     any size and alignment; addresses of any kind
 *   Ownership: a block is never given back: free() of one is ignored
 *   Errors:    NULL when the arena is full; false when events are no longer kept
 *   Threads:   any, in signal handlers, before relocation: hidden data only
 *   Bounds:    MT_ARENA_BYTES of blocks, untouched memory until used; MT_ARENA_EVENTS
 *              events, those beyond are counted
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define MT_ARENA_BYTES (256 * 1024)
#define MT_ARENA_EVENTS 512

struct mt_arena_event {
	uint64_t address;
	uint64_t size;
	uint8_t type; /* MT_CELL_ALLOC or MT_CELL_FREE; written last, 0 before that */
	uint8_t kind; /* MT_FN_* */
};

extern char mt_arena_memory[MT_ARENA_BYTES];

static inline bool mt_arena_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)mt_arena_memory < MT_ARENA_BYTES;
}

/* Zeroed; align: a power of two, or 0. */
void *mt_arena_alloc(size_t align, size_t size);

/* What was asked for, rounded up to 8; 8 for nothing. */
size_t mt_arena_size(const void *p);

/* Was a block ever made? */
bool mt_arena_used(void);

/* Keeps an event; false: mt_arena_take() was called before, and the caller records it. */
bool mt_arena_note(uint8_t type, uint8_t kind, const void *address, size_t size);

/*
 * The end of keeping: returns the number of events, which are valid from now on but for
 * those of type 0, and how many are missing.  To be called once.
 */
unsigned mt_arena_take(const struct mt_arena_event **ret, uint64_t *ret_lost);

#pragma GCC visibility pop
