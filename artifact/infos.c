/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * infos.c - see infos.h for the contract
 *
 * Invariants
 *   - At most half of the slots are taken, so a probe ends soon at an empty one.
 *   - All zero is an empty table: slots are there once cap is not 0.
 *   - All frees by one function have one info, and nearly all allocations of one chain: the last
 *     one of a node, or of a type, is looked at first.  Most nodes have a place of their own.
 */
#include "artifact/infos.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define INFOS_FIRST 4096

static uint32_t slot_of(const struct mt_info *info, uint32_t cap)
{
	uint64_t hash = (mt_info_kind(info) ^ info->size << 40 ^ info->size >> 24) *
			0x9e3779b97f4a7c15ULL;

	hash ^= hash >> 32;
	hash = (hash + info->size) * 0xc2b2ae3d27d4eb4fULL;
	return (uint32_t)(hash >> 40) & (2 * cap - 1);
}

static uint32_t *find(uint32_t *slots, uint32_t cap, const struct mt_info *rows,
		      const struct mt_info *info)
{
	uint32_t i = slot_of(info, cap);

	while (slots[i] && !mt_info_is_same(&rows[slots[i] - 1], info))
		i = (i + 1) & (2 * cap - 1);
	return &slots[i];
}

static int grow(struct mt_infos *infos)
{
	uint32_t cap = infos->cap ? 2 * infos->cap : INFOS_FIRST;
	mt_cleanup(mt_freep) uint32_t *slots = calloc(2 * (size_t)cap, sizeof(*slots));
	struct mt_info *rows;

	if (!slots)
		return -ENOMEM;
	rows = realloc(infos->rows, cap * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	infos->rows = rows;
	for (uint32_t i = 0; i < infos->n; i++)
		*find(slots, cap, rows, &rows[i]) = i + 1;
	free(infos->slots);
	infos->slots = mt_take_ptr(slots);
	infos->cap = cap;
	return 0;
}

void mt_infos_done(struct mt_infos *infos)
{
	free(infos->rows);
	free(infos->slots);
	*infos = (struct mt_infos){ 0 };
}

void mt_infos_reset(struct mt_infos *infos)
{
	infos->n = 0;
	if (infos->cap)
		memset(infos->slots, 0, 2 * (size_t)infos->cap * sizeof(*infos->slots));
}

static int find_or_add(struct mt_infos *infos, const struct mt_info *info, uint32_t *ret)
{
	uint32_t *slot = infos->cap ? find(infos->slots, infos->cap, infos->rows, info) : NULL;

	if (slot && *slot) {
		*ret = *slot - 1;
		return 0;
	}
	if (infos->n >= MT_INFOS_MAX)
		return -ENOSPC;
	if (infos->n == infos->cap) {
		int r = grow(infos);

		if (r < 0)
			return r;
		slot = find(infos->slots, infos->cap, infos->rows, info);
	}
	infos->rows[infos->n++] = *info;
	*slot = infos->n;
	*ret = infos->n - 1;
	return 1;
}

int mt_infos_look_up(struct mt_infos *infos, const struct mt_info *info, uint32_t *ret)
{
	int r = find_or_add(infos, info, ret);

	if (r >= 0)
		*mt_infos_recent(infos, info) = *ret;
	return r;
}
