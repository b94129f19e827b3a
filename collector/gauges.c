/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gauges.c - see gauges.h for the contract
 *
 * Invariants
 *   - A row goes on where the ring's row before ended, so that rows of a ring add up to what
 *     was ever on it.
 *   - The consumer's position is read before the producers': it never is ahead of them.
 */
#include "collector/gauges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/clock.h"

struct gauge {
	uint64_t producer, consumer; /* as the last row has them */
	bool open;
	bool damaged;
};

/* What was read of a ring. */
struct reading {
	uint64_t bytes, watermark_bytes;
	uint64_t producer, consumer;
	uint64_t peak_bytes;
};

struct mt_gauges {
	struct mt_stats *stats;
	struct mt_segments *segments;
	struct mt_probes *probes;
	struct gauge stacks, life;
	struct gauge *events; /* MT_SLOTS of them */
	uint64_t start_ns, end_ns;
};

static void gauges_freep(struct mt_gauges **gauges)
{
	mt_gauges_free(*gauges);
}

int mt_gauges_new(struct mt_stats *stats, struct mt_segments *segments, struct mt_probes *probes,
		  struct mt_gauges **ret)
{
	mt_cleanup(gauges_freep) struct mt_gauges *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->stats = stats;
	g->segments = segments;
	g->probes = probes;
	g->events = calloc(MT_SLOTS, sizeof(*g->events));
	if (!g->events)
		return -ENOMEM;
	*ret = mt_take_ptr(g);
	return 0;
}

void mt_gauges_free(struct mt_gauges *g)
{
	if (!g)
		return;
	free(g->events);
	free(g);
}

static void put_row(struct mt_gauges *g, struct gauge *gauge, uint32_t ring,
		    const struct reading *now)
{
	uint64_t fill = now->producer - now->consumer, peak = now->peak_bytes;
	struct mt_stats_ring_open opened = {
		.ring = ring,
		.bytes = now->bytes,
		.watermark_bytes = now->watermark_bytes,
	};
	struct mt_stats_ring row = {
		.ring = ring,
		.start_ns = g->start_ns,
		.end_ns = g->end_ns,
		.producer_before = gauge->producer,
		.producer_after = now->producer,
		.consumer_before = gauge->consumer,
		.consumer_after = now->consumer,
	};

	if (gauge->damaged ||
	    (now->producer == gauge->producer && now->consumer == gauge->consumer && !peak))
		return;
	gauge->damaged = now->producer < gauge->producer || now->consumer < gauge->consumer ||
			 now->consumer > now->producer || fill > now->bytes;
	if (gauge->damaged)
		return;
	if (!gauge->open)
		mt_stats_ring_open(g->stats, &opened);
	/* Who has put this there may not have raised the mark yet. */
	peak = peak > fill ? peak : fill;
	row.peak_bytes = peak < now->bytes ? peak : now->bytes;
	mt_stats_ring(g->stats, &row);
	gauge->open = true;
	gauge->producer = now->producer;
	gauge->consumer = now->consumer;
}

/* Takes a mark, and leaves 0. */
static uint64_t take_peak(__u64 *peak)
{
	if (!__atomic_load_n(peak, __ATOMIC_RELAXED))
		return 0;
	return __atomic_exchange_n(peak, 0, __ATOMIC_ACQ_REL);
}

static void read_events(struct mt_gauges *g, uint32_t slot)
{
	struct mt_thread *thread = mt_segments_thread(g->segments, slot);
	struct reading now = {
		.bytes = g->segments->ring_bytes,
		.watermark_bytes = g->segments->control->ring_watermark_bytes,
	};

	now.consumer = __atomic_load_n(&thread->tail, __ATOMIC_ACQUIRE);
	now.producer = __atomic_load_n(&thread->head, __ATOMIC_ACQUIRE);
	now.peak_bytes = take_peak(&thread->peak_bytes);
	put_row(g, &g->events[slot], slot, &now);
}

static void read_bpf(struct mt_gauges *g, struct gauge *gauge, uint32_t ring,
		     const struct mt_probes_ring *state, __u64 *peak)
{
	struct reading now = {
		.bytes = state->bytes,
		.watermark_bytes = state->watermark_bytes,
		.producer = state->produced,
		.consumer = state->consumed,
		.peak_bytes = take_peak(peak),
	};

	put_row(g, gauge, ring, &now);
}

void mt_gauges_read(struct mt_gauges *g, uint64_t start_ns)
{
	struct mt_control *control = g->segments->control;
	struct mt_probes_ring stacks, life;

	g->start_ns = start_ns;
	g->end_ns = mt_clock_ns();
	for (uint32_t c = 0; c < g->segments->chunks_used; c++) {
		if (!g->segments->chunks[c].given)
			continue;
		for (uint32_t i = 0; i < MT_CHUNK_SLOTS; i++)
			read_events(g, c * MT_CHUNK_SLOTS + i);
	}
	if (!g->probes)
		return;
	mt_probes_rings(g->probes, &stacks, &life);
	read_bpf(g, &g->stacks, MT_STATS_STACKS, &stacks, &control->stacks_peak_bytes);
	read_bpf(g, &g->life, MT_STATS_LIFE, &life, &control->life_peak_bytes);
}
