/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * window.h - the words of a copied stack, by the address that they had
 *
 * Contract
 *   Input:     start and end are multiples of 8 and start <= end; words has mask + 1 words,
 *              a power of two that is at least (end - start) / 8.  That is the maker's to
 *              see to; the addresses that are asked for may be anything.
 *   Ownership: words are borrowed.
 *   Bounds:    a word is read only if [start, end) has all of it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "artifact/format.h"

struct mt_window {
	uint64_t start, end;   /* addresses in the target */
	const uint64_t *words; /* the word at address A is words[(A / 8) & mask] */
	uint64_t mask;
	bool bottom; /* end is the stack's own end, and not the budget's */
};

/* Whether the window has the word at address; only then is *ret written. */
static inline bool mt_window_read(const struct mt_window *window, uint64_t address, uint64_t *ret)
{
	if (__builtin_expect(address - window->start >= window->end - window->start, 0))
		return false;
	if (__builtin_expect(address & 7, 0))
		return false;
	*ret = window->words[(address / 8) & window->mask];
	return true;
}

/* What a chain ends with if it needs a word that the window does not have. */
static inline enum mt_stop mt_window_missing(const struct mt_window *window, uint64_t address)
{
	return address >= window->end && !(address & 7) ? MT_STOP_TRUNCATED : MT_STOP_BAD;
}
