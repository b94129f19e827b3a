/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * gauges.h - the rings' positions and high-water marks, pass by pass, for the statistics
 *
 * Contract
 *   Input:     segments and, in an eBPF run, probes; both borrowed, as are the statistics.
 *              What targets can write is copied once: a mark is cut to its ring's size, and
 *              a ring whose positions make no sense has no rows from then on.
 *   Ownership: mt_gauges_new() gives an object for mt_gauges_free(), which takes NULL.
 *   Errors:    -ENOMEM.
 *   Threads:   that of the passes.
 *   Bounds:    24 bytes for each slot.
 *
 * A thread raises its ring's mark when it appends, as always, and is told nothing: the
 * collector takes the mark and leaves 0, in one exchange.  A thread that has compared before
 * that, and found itself below the mark, belongs to what was taken; one that found itself
 * above stores after it, and its fill is in the ring's next row.  So no fill is missing from
 * all rows, and none is in a row before it was.
 */
#include <stdint.h>

#include "collector/probes.h"
#include "collector/segments.h"
#include "collector/stats.h"

struct mt_gauges;

int mt_gauges_new(struct mt_stats *stats, struct mt_segments *segments, struct mt_probes *probes,
		  struct mt_gauges **ret);
void mt_gauges_free(struct mt_gauges *gauges);

/* After a pass that began at start_ns: a row for each ring on which something moved. */
void mt_gauges_read(struct mt_gauges *gauges, uint64_t start_ns);
