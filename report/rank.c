/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rank.c - see rank.h
 */
#include "report/rank.h"

#include <errno.h>
#include <stdlib.h>

#include "report/grow.h"

static struct mt_rank_row row_of(const struct mt_replay_chain *chain, enum mt_rank rank)
{
	switch (rank) {
	case MT_RANK_PEAK:
		return (struct mt_rank_row){ .bytes = chain->at_peak.bytes,
					     .count = chain->at_peak.allocations };
	case MT_RANK_ALLOCATIONS:
		return (struct mt_rank_row){ .bytes = chain->figures.bytes_allocated,
					     .count = chain->figures.allocations };
	default:
		return (struct mt_rank_row){ .bytes = chain->figures.left_bytes,
					     .count = chain->figures.left_allocations };
	}
}

static int compare(uint64_t first_x, uint64_t first_y, uint64_t then_x, uint64_t then_y,
		   uint32_t node_x, uint32_t node_y)
{
	if (first_x != first_y)
		return first_x > first_y ? -1 : 1;
	if (then_x != then_y)
		return then_x > then_y ? -1 : 1;
	return (node_x > node_y) - (node_x < node_y);
}

static int by_bytes(const void *a, const void *b)
{
	const struct mt_rank_row *x = a, *y = b;

	return compare(x->bytes, y->bytes, x->count, y->count, x->node, y->node);
}

static int by_count(const void *a, const void *b)
{
	const struct mt_rank_row *x = a, *y = b;

	return compare(x->count, y->count, x->bytes, y->bytes, x->node, y->node);
}

int mt_rank_chains(const struct mt_replay *replay, enum mt_rank rank, size_t limit,
		   struct mt_rank_row **ret, size_t *ret_len)
{
	struct mt_rank_row *rows = NULL;
	size_t len = 0, room = 0;

	for (size_t i = 1; i < replay->chains_len; i++) {
		struct mt_rank_row row = row_of(&replay->chains[i], rank);
		int err;

		if (!row.count)
			continue;
		err = mt_grow(&rows, &room, len + 1, sizeof(*rows));
		if (err) {
			free(rows);
			return err;
		}
		row.node = replay->chains[i].node;
		rows[len++] = row;
	}
	if (len)
		qsort(rows, len, sizeof(*rows), rank == MT_RANK_ALLOCATIONS ? by_count : by_bytes);
	*ret = rows;
	*ret_len = len < limit ? len : limit;
	return 0;
}
