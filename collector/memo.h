/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * memo.h - chains that were unwound before, answered by comparing the words they depend on
 *
 * What the unwinder's fast loop makes of a window is decided by the space, the window's
 * bounds and the words that it reads; those include words that only made it stop, or try
 * something else.  So a chain whose words are all as they were, under the same stamp and in
 * the same bounds, is the same chain: mt_memo_find().
 *
 * A frame's outer part is decided by less: its pc and sp, whether it was reached by a frame
 * pointer, rbp's value if a frame reads it before another one restores it, the window's end,
 * and the words that are read from there on.  So a walk whose frame is one of a known chain,
 * with an outer part whose words are as they were, goes on as that one did: mt_memo_join().
 *
 * Contract
 *   Input:     windows of mt_memo_takes(); steps as the fast loop made them in the window,
 *              all reads that succeeded among them.  Nodes are all of one tree.
 *   Ownership: mt_memo_new() gives an object for mt_memo_free(), which takes NULL.  All else
 *              is copied, nothing is borrowed beyond a call.
 *   Errors:    none: what there is no room for is not remembered.
 *   Threads:   one at a time.
 *   Bounds:    3 MiB at most, whatever the number of threads and chains: 1 MiB of chains,
 *              the oldest of which make room, and MT_MEMO_SPINES chains with their frames.
 *              Memory is touched as it is used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/space.h"
#include "collector/window.h"

/* Of one chain; longer ones are not remembered. */
#define MT_MEMO_FRAMES 512
#define MT_MEMO_WORDS 1024
/* A thread's stack has one, or several if it is longer than windows. */
#define MT_MEMO_SPINES 64

#define MT_MEMO_NOWHERE UINT64_MAX

/* What the fast loop found at one frame. */
struct mt_memo_step {
	uint64_t pc, sp;
	uint64_t rbp;	 /* its value here, if uses_rbp */
	uint64_t rbp_at; /* where the caller's is saved, if saves_rbp */
	uint64_t at[2];	 /* other words that were read, or MT_MEMO_NOWHERE */
	uint32_t node;	 /* of the chain from here outwards */
	bool linked;	 /* the frame below was left by its frame pointer */
	bool uses_rbp, saves_rbp;
};

struct mt_memo;

int mt_memo_new(struct mt_memo **ret);
void mt_memo_free(struct mt_memo *memo);

/* Whether the window is one that the functions below can be asked of. */
bool mt_memo_takes(const struct mt_window *window);

/* Whether the chain of the window is known. */
bool mt_memo_find(struct mt_memo *memo, const struct mt_space *space,
		  const struct mt_window *window, uint32_t *ret_node);

/* Begins a walk through the window, in which mt_memo_join() may be asked. */
void mt_memo_begin(struct mt_memo *memo, const struct mt_space *space,
		   const struct mt_window *window);

/* Whether a known chain goes on as the walk will from this frame on, where rbp's value is at
 * rbp_at; ret_node: that chain. */
bool mt_memo_join(struct mt_memo *memo, const struct mt_window *window,
		  const struct mt_memo_step *step, uint64_t rbp_at, uint32_t *ret_node);

/*
 * Ends the walk: its n steps, the innermost first, without one that joined; each with its
 * node.  tied: some word that the window does not have was asked for, and might be there if
 * the window began elsewhere.
 */
void mt_memo_learn(struct mt_memo *memo, const struct mt_window *window,
		   const struct mt_memo_step *steps, size_t n, bool tied);
