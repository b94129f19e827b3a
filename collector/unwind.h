/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * unwind.h - a window, with the code that was mapped then, in; a node of the call tree out
 *
 * Contract
 *   Input:     a window that begins with the words of wire/reference.h (MT_SAVED_*); its
 *              words are the target's and may be anything.  The space is the one that the
 *              process had when the window was copied.
 *   Ownership: all are borrowed for the call.  mt_unwinder_new() gives an object for
 *              mt_unwinder_free(), which takes NULL.
 *   Errors:    -ENOMEM and -EOVERFLOW of the tree.  A chain that could not be followed to
 *              its end is no error: its root says why (enum mt_stop); one that could not be
 *              begun (the window lacks those words, or has no return address) is a root.
 *   Threads:   one at a time for each unwinder, space and tree.
 *   Bounds:    MT_TRACE_FRAMES frames; the unwinder has 4.5 MiB at most, however much code
 *              and however many threads there are.
 *
 * The chain is what a debugger shows, from the function that called malloc outwards.  Each
 * pc is looked up one byte lower, in the call that will return to it (which may be the last
 * instruction of its function), except where the frame below is a signal's: there it is
 * the interrupted instruction itself.
 *
 * Code without unwind information is left by its frame pointer if it seems to have one
 * (collector/frame_pointer.h).
 */
#include "collector/call_tree.h"
#include "collector/space.h"
#include "collector/unwind_full.h"
#include "collector/window.h"
#include "wire/learned.h"

struct mt_unwinder;

/* What became of the windows that mt_unwind() had. */
struct mt_unwinder_counts {
	uint64_t found;	 /* known as a whole */
	uint64_t joined; /* walked up to where they met a known chain */
	uint64_t walked; /* the rest */
	uint64_t full;	 /* those with a frame that is the full evaluator's */
};

int mt_unwinder_new(struct mt_unwinder **ret);
void mt_unwinder_free(struct mt_unwinder *unwinder);

/* tree: the same at each call of the unwinder, which remembers its nodes
 * (collector/memo.h). */
int mt_unwind(struct mt_unwinder *unwinder, const struct mt_space *space,
	      const struct mt_window *window, struct mt_call_tree *tree, uint32_t *ret_node);

/* The chain itself, without a tree; it is the unwinder's until the next call. */
int mt_unwind_trace(struct mt_unwinder *unwinder, const struct mt_space *space,
		    const struct mt_window *window, const struct mt_trace **ret);

/* A chain's frames as the fast loop walks them: each by a row of its function. */
struct mt_way {
	enum mt_stop stop; /* MT_STOP_END or MT_STOP_TRUNCATED */
	uint32_t n;
	uint64_t pcs[MT_LEARNED_FRAMES];
	struct mt_fast_row rows[MT_LEARNED_FRAMES]; /* RSP, RBP, CFA_AT_RBP; the last: or END */
};

/* The way up through the window; false: it has another kind of frame, or ends otherwise, or is
 * too long. */
bool mt_unwind_way(struct mt_unwinder *unwinder, const struct mt_space *space,
		   const struct mt_window *window, struct mt_way *ret);

void mt_unwinder_counts(const struct mt_unwinder *unwinder, struct mt_unwinder_counts *ret);

static inline void mt_unwinder_freep(struct mt_unwinder **unwinder)
{
	mt_unwinder_free(*unwinder);
}
