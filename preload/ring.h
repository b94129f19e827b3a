/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * ring.h - the writer's end of an event ring, wire/ring.h
 *
 * Contract
 *   Input:     a ring that the calling thread holds.  Its words are shared with the
 *              collector and, in a damaged run, anything: none can make an append write
 *              outside of the ring.
 *   Errors:    false: nothing was appended: the collector is gone or, of an event or a stack's
 *              record, the ring is full and the run never waits (MT_PAUSE_NEVER); of a blob,
 *              the ring takes none any more
 *   Threads:   the one that holds the ring, with its signal handlers: appends nest, and may
 *              be left by siglongjmp()
 *   Bounds:    waits while the ring is full, or for the end of an episode of pressure, as long
 *              as the collector lives
 */
#include <stdbool.h>
#include <stdint.h>

#include "preload/session.h"
#include "wire/ring.h"

#pragma GCC visibility push(hidden)

/* Where a ring is, and how this thread appends. */
struct mt_ring {
	struct mt_thread *head;
	char *cells;
	uint32_t bytes; /* a power of two */
	/* The C library has registered it for this thread, which comes to an end of a section;
	 * not set again. */
	uint32_t rseq;
	uint32_t slot;
	uint32_t watermark; /* bytes in it that latch an episode of pressure */
};

/* A record on its way, in pieces. */
struct mt_piece_writer {
	struct mt_ring *ring;
	uint64_t w[3];
	uint32_t word;
	uint16_t index;
	uint8_t kind;
	uint8_t n; /* words in w */
	bool failed;
};

/* One try: false where the ring is full. */
bool mt_ring_try(struct mt_ring *ring, const struct mt_cell *cell);

/* Appends; waits for room, in every run: without what says whose a ring is, nothing means
 * anything.  A loss is counted. */
bool mt_ring_append(struct mt_ring *ring, const struct mt_cell *cell);

/* The same of an event, which is given up instead in a run that never waits. */
bool mt_ring_append_event(struct mt_ring *ring, const struct mt_cell *cell);

/* The slow way of mt_ring_heed(). */
void mt_ring_park(const struct mt_ring *ring);

/* Parks while an episode of pressure is latched, if that is how this run pauses. */
static inline void mt_ring_heed(const struct mt_ring *ring)
{
	uint64_t latch = __atomic_load_n(&mt_session.control->latch, __ATOMIC_RELAXED);

	if (__builtin_expect(latch != 0, 0))
		mt_ring_park(ring);
}

/*
 * The BPF ring had no room: until the episode's end, or the time is over, or at once where
 * none is latched any more.  False: this run does not wait.
 */
bool mt_ring_await_release(const struct mt_ring *ring, long at_most_ns);

/* Is the ring, in a run that never waits, more than half full, so that a record is better not
 * tried again? */
bool mt_ring_gives_up(const struct mt_ring *ring);

/* For what is not to wait until a rest of the collector ends (collector/rest.h). */
void mt_ring_wake_collector(void);

/*
 * Appends a record as one blob; words[0] is for the cell's head, the record's bytes (a
 * multiple of 8) follow, and 24 bytes behind them can be read.  Waits for room.  Only where
 * mt_ring_takes_blob().
 */
bool mt_ring_append_blob(struct mt_ring *ring, uint8_t kind, uint64_t *words, uint32_t bytes);

/* A blob needs the restartable sequence, and no more than half of the ring. */
static inline bool mt_ring_takes_blob(const struct mt_ring *ring, uint32_t bytes)
{
	return ring->rseq && mt_blob_cells(bytes) * sizeof(struct mt_cell) <= ring->bytes / 2;
}

/* Finishes what the thread that held the ring before left undone. */
void mt_ring_take_over(const struct mt_ring *ring);

/* How many pieces a record of this length has. */
static inline uint32_t mt_ring_pieces(uint32_t bytes)
{
	return (bytes + MT_PIECE_BYTES - 1) / MT_PIECE_BYTES;
}

/* Begins a record of so many bytes, a multiple of 8; id: another for each record. */
void mt_piece_begin(struct mt_piece_writer *writer, struct mt_ring *ring, uint8_t kind, uint16_t id,
		    uint32_t bytes);

void mt_piece_word(struct mt_piece_writer *writer, uint64_t word);

/* The last, perhaps short, piece; true if all of them are on the ring. */
bool mt_piece_end(struct mt_piece_writer *writer);

#pragma GCC visibility pop
