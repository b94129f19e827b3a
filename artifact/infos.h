/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * infos.h - numbers for what many events have in common
 *
 * Contract
 *   Input:     any values.
 *   Errors:    -ENOMEM; -ENOSPC: MT_INFOS_MAX are taken, call mt_infos_reset() first.
 *              The table is then as it was.
 *   Threads:   one at a time.
 *   Bounds:    MT_INFOS_MAX infos; amortised constant time for each call, but not against
 *              somebody who chooses values that collide.
 */
#include <stdbool.h>
#include <stdint.h>

#include "artifact/layout.h"

struct mt_info {
	uint64_t size;
	uint32_t node;
	uint8_t type;	  /* enum mt_event_type */
	uint8_t function; /* MT_FN_* */
	uint16_t spare;
};

#define MT_INFOS_RECENT 8192

struct mt_infos {
	struct mt_info *rows;
	uint32_t n;
	uint32_t cap;
	uint32_t *slots; /* row + 1, or 0; a power of two, at least 2 * cap */
	/* Rows asked for last, by node; of events without one, by type.  Or 0. */
	uint32_t recent[MT_INFOS_RECENT];
};

void mt_infos_done(struct mt_infos *infos);
void mt_infos_reset(struct mt_infos *infos);

/* All but the size, as one number. */
static inline uint64_t mt_info_kind(const struct mt_info *info)
{
	return (uint64_t)info->node << 16 | (uint64_t)info->type << 8 | info->function;
}

static inline bool mt_info_is_same(const struct mt_info *a, const struct mt_info *b)
{
	return a->size == b->size && mt_info_kind(a) == mt_info_kind(b);
}

static inline uint32_t *mt_infos_recent(struct mt_infos *infos, const struct mt_info *info)
{
	return &infos->recent[(info->node ? info->node : info->type) % MT_INFOS_RECENT];
}

/* Whether the info is the one that its node, or type, had last. */
static inline bool mt_infos_is_recent(struct mt_infos *infos, const struct mt_info *info,
				      uint32_t *ret)
{
	*ret = *mt_infos_recent(infos, info);
	return *ret < infos->n && mt_info_is_same(&infos->rows[*ret], info);
}

/* For one that is not.  Returns 1 if the info is new, 0 if not. */
int mt_infos_look_up(struct mt_infos *infos, const struct mt_info *info, uint32_t *ret);

/* The same for any info. */
static inline int mt_infos_intern(struct mt_infos *infos, const struct mt_info *info, uint32_t *ret)
{
	return mt_infos_is_recent(infos, info, ret) ? 0 : mt_infos_look_up(infos, info, ret);
}
