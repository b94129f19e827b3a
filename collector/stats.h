/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stats.h - what the pipeline did and how long it took, as lines of JSON: doc/STATS.md
 *
 * Contract
 *   Input:     a descriptor that can be written and does not block (a regular file never
 *              does in this sense).
 *   Ownership: mt_stats_open() takes fd, whatever comes of it, and gives an object for
 *              mt_stats_close().  All other functions do nothing with NULL, and so does
 *              mt_stats_close().  What is passed is copied.
 *   Errors:    a row can not fail.  The first failure of the file is kept for
 *              mt_stats_close(), and what comes after it is dropped: the file ends there,
 *              perhaps within a line.  -ETIMEDOUT: the file took nothing for MT_STATS_PATIENCE_MS.
 *   Threads:   any for rows; a thread of its own writes them, and makes the rows of the
 *              backlog.  Open and close: one.
 *   Bounds:    two buffers of MT_STATS_BUFFER_BYTES.  A row that finds no room waits for the
 *              file, MT_STATS_PATIENCE_MS at most: then there are no more rows.  So a reader
 *              that takes a MiB in less than that can make a run as slow as it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_STATS_BUFFER_BYTES (1024 * 1024)
#define MT_STATS_PATIENCE_MS 1000
#define MT_STATS_BACKLOG_NS (10 * 1000 * 1000ULL)

/* Rings: a slot's, or one of BPF's. */
#define MT_STATS_STACKS UINT32_MAX
#define MT_STATS_LIFE (UINT32_MAX - 1)

struct mt_stats;

int mt_stats_open(int fd, struct mt_stats **ret);

/* Writes what there is; returns the first failure. */
int mt_stats_close(struct mt_stats *stats);

/* A ring is read for the first time. */
struct mt_stats_ring_open {
	uint32_t ring;
	uint64_t bytes;
	uint64_t watermark_bytes; /* fill at which pressure is latched */
};
void mt_stats_ring_open(struct mt_stats *stats, const struct mt_stats_ring_open *row);

/* Something on a ring moved in a pass.  Positions count bytes. */
struct mt_stats_ring {
	uint32_t ring;
	uint64_t start_ns, end_ns; /* of the pass */
	uint64_t producer_before, producer_after;
	uint64_t consumer_before, consumer_after;
	uint64_t peak_bytes; /* the greatest fill since the ring's last row */
};
void mt_stats_ring(struct mt_stats *stats, const struct mt_stats_ring *row);

/* An episode of pressure is over. */
struct mt_stats_pause {
	uint32_t tgid;
	uint64_t paused_ns; /* how long */
};
struct mt_stats_pressure {
	uint32_t ring;
	uint32_t slot;	/* of the thread that latched it */
	bool by_signal; /* else by futex */
	uint64_t latch_ns, release_ns;
	const struct mt_stats_pause *processes; /* those that were paused */
	size_t n_processes;
};
void mt_stats_pressure(struct mt_stats *stats, const struct mt_stats_pressure *row);

/* The stacks of a batch of events were resolved. */
struct mt_stats_resolve {
	uint64_t start_ns;
	uint64_t wait_ns; /* for the encoder, since then */
	uint64_t events;
	uint64_t records; /* stack records that came */
	uint64_t chains;  /* call chains that are new */
};
void mt_stats_resolve(struct mt_stats *stats, const struct mt_stats_resolve *row);

/* A frame was written. */
struct mt_stats_encode {
	uint64_t wait_ns;   /* for batches */
	uint64_t encode_ns; /* packing and compressing */
	uint64_t write_ns;
	uint64_t events;
	uint64_t msgpack_bytes, zstd_bytes;
};
void mt_stats_encode(struct mt_stats *stats, const struct mt_stats_encode *row);

/* For the backlog: how many events were handed to the encoder so far. */
void mt_stats_drained(struct mt_stats *stats, uint64_t events);
