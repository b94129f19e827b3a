/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * unwind_full.h - a chain with all registers and every kind of rule
 *
 * Contract
 *   Input:     as of mt_unwind(), of which it is the part for the few chains that have
 *              a frame that the fast loop does not know: signal frames, ld.so's resolver,
 *              PLT stubs, other CFA registers, expressions.
 *   Ownership: mt_unwind_full_done() takes an object that is all zero.
 *   Errors:    -ENOMEM, at the first use only.
 *   Bounds:    MT_TRACE_FRAMES frames, MT_ROW_CACHE rows kept.
 */
#include "collector/call_tree.h"
#include "collector/cfi.h"
#include "collector/space.h"
#include "collector/window.h"

/* As many return addresses as the largest window has words; only signal frames, where the
 * stack pointer may go down, can make a chain that is longer. */
#define MT_TRACE_FRAMES 8192

#define MT_ROW_CACHE 1024

/* A chain: frames[0] is the innermost. */
struct mt_trace {
	size_t len;
	enum mt_stop stop;
	struct mt_frame frames[MT_TRACE_FRAMES];
};

struct mt_row_cache_entry;

struct mt_unwind_full {
	struct mt_row_cache_entry *rows;
};

void mt_unwind_full_done(struct mt_unwind_full *full);

int mt_unwind_full(struct mt_unwind_full *full, const struct mt_space *space,
		   const struct mt_window *window, struct mt_trace *ret);
