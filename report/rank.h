/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * rank.h - the chains that matter most, the greatest first
 *
 * Contract
 *   Input:     a replay that is finished.
 *   Ownership: the rows are the caller's, to be freed with free().
 *   Errors:    -ENOMEM.
 *   Bounds:    a row for each chain, while it sorts.
 */
#include "report/replay.h"

enum mt_rank {
	MT_RANK_PEAK,	     /* bytes live at the run's peak */
	MT_RANK_ALLOCATIONS, /* number of allocations */
	MT_RANK_LEFT,	     /* bytes never freed */
	_MT_RANK_MAX,
};

struct mt_rank_row {
	uint32_t node;
	uint64_t bytes;
	uint64_t count; /* blocks */
};

/* At most limit rows; chains with nothing to show are left out.  Ties: bytes, then blocks
 * (or the reverse), then the chain that was seen first. */
int mt_rank_chains(const struct mt_replay *replay, enum mt_rank rank, size_t limit,
		   struct mt_rank_row **ret, size_t *ret_len);
