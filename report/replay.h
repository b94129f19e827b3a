/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * replay.h - events in, figures out: what was allocated, freed, live at the peak, left
 *
 * The rules, which the report's reader relies on:
 *
 *   allocation  An ALLOC, or the second half of a realloc.
 *   free        The end of a block that was known: a FREE, or the first half of a realloc
 *               that did not fail.  A free of an address that is not known (a block from
 *               before the process was tracked, or inherited over a fork) is an untracked
 *               free, and not counted among the frees.  So allocations - frees is what is
 *               left, always.
 *   realloc     One free and one allocation.  Between BEGIN and END the old block counts
 *               as live, and its end and the new block's beginning are one moment.  A
 *               realloc that fails did not happen; so did one whose end is never seen.
 *               Another thread may get the old address before the END: then the old block
 *               ended with that.
 *   left        Blocks that are live when their process ends, execs or the recording ends.
 *               They leave the run's heap with their process.
 *   peak        The first moment at which the live bytes of all processes together, sizes
 *               as asked for, were at their maximum.
 *   temporary   The free of a block, or its realloc, is the first event after its
 *               allocation, of those that its thread has: no allocation, no free and no
 *               realloc that did not fail in between.
 *   contradiction
 *               An allocation at an address that is live, an end of a realloc that did not
 *               begin, a failure of one whose block is gone.  The block that is in the way
 *               is taken as freed; when its free comes later with a time before the new
 *               block's, then it was only late, and there is no contradiction.  An event
 *               at address 0 is one, and nothing else: there is no block.
 *
 * Contract
 *   Input:     processes, threads and nodes are declared before an event names them, their
 *              ids counting up from 0 (roots are declared from the start); events in the
 *              order that is right for each address of a process.
 *   Ownership: what the struct points to is its own until mt_replay_done().
 *   Errors:    -EPROTO: an id that was not declared or out of order, an unknown type;
 *              -ENOMEM.  After an error only mt_replay_done().
 *   Threads:   one at a time.
 *   Bounds:    live blocks, nodes, threads, processes and distinct sizes; not events.
 */
#include "artifact/format.h"
#include "report/block_table.h"
#include "report/sizes.h"

/* What only grows stops at UINT64_MAX instead of wrapping; live_bytes, from which is taken what
 * was added, can not: only sizes that no address space has make it wrap. */
struct mt_figures {
	uint64_t allocations;
	uint64_t bytes_allocated;
	uint64_t frees;
	uint64_t temporary_allocations;
	uint64_t live_allocations; /* now; 0 when the replay is finished */
	uint64_t live_bytes;
	uint64_t left_allocations; /* see above */
	uint64_t left_bytes;
};

struct mt_peak {
	uint64_t bytes;
	uint64_t time_ns;
};

/* What was live at the run's peak. */
struct mt_at_peak {
	uint64_t allocations;
	uint64_t bytes;
	uint64_t peak; /* number of the peak that this is about */
};

/* Of the chain that ends in a node, its callers' not included. */
struct mt_replay_chain {
	uint32_t node;
	struct mt_figures figures;
	struct mt_at_peak at_peak;
};

struct mt_replay_process {
	struct mt_figures figures;
	struct mt_peak peak; /* its own */
	struct mt_at_peak at_peak;
	struct mt_block_table live;
};

/* Reallocs of one thread that can be open at a time: signal handlers nest. */
#define MT_REPLAY_OPEN_MAX 8

struct mt_open_realloc {
	uint64_t address;
	uint32_t state; /* replay.c */
};

struct mt_replay_thread {
	/* frees are those that it did; all else is of blocks that it allocated. */
	struct mt_figures figures;
	uint64_t last_address; /* that its last event allocated, or 0 */
	uint32_t process;
	uint32_t open_len;
	struct mt_open_realloc *open; /* MT_REPLAY_OPEN_MAX of them, or NULL */
};

struct mt_replay {
	struct mt_figures total;
	struct mt_peak peak;
	uint64_t events;
	uint64_t untracked_frees;
	uint64_t contradictions;
	uint64_t calls[UINT8_MAX + 1]; /* by function, MT_FN_* */
	uint64_t last_ns;	       /* greatest time of an event */

	struct mt_replay_chain *chains; /* those that allocated, in order of the first time */
	size_t chains_len, chains_room; /* [0] is none */
	uint32_t *chain_of;		/* by node id: the chain, or 0 */
	size_t nodes_len, nodes_room;
	struct mt_replay_process *processes; /* by process id; 0 is nobody */
	size_t processes_len, processes_room;
	struct mt_replay_thread *threads; /* by thread id; 0 is nobody */
	size_t threads_len, threads_room;
	struct mt_sizes sizes; /* sorted when the replay is finished */

	uint64_t peaks; /* how often the peak has moved so far */
	uint64_t seed;
};

int mt_replay_init(struct mt_replay *replay);
void mt_replay_done(struct mt_replay *replay);

/* An id that was declared before is fine; a thread then moves to the process. */
int mt_replay_node(struct mt_replay *replay, uint32_t id);
int mt_replay_process(struct mt_replay *replay, uint32_t id);
int mt_replay_thread(struct mt_replay *replay, uint32_t id, uint32_t process);

int mt_replay_event(struct mt_replay *replay, const struct mt_event *event);
int mt_replay_process_end(struct mt_replay *replay, uint32_t id);

/* The recording ends, and with it all processes. */
void mt_replay_finish(struct mt_replay *replay);
