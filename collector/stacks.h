/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stacks.h - stack names of events to nodes of the call tree
 *
 * Keeps for each slot the stack records that have come and that no event has needed yet,
 * the decoder with its copy of the reference, and a mirror of the slot's dictionary with
 * the chain of each entry.  Records are applied up to an event's seq and no further, so
 * that each stack is unwound with the modules that its process had then.
 *
 * What is lost stays lost, but nothing else is: a record that does not verify, or never
 * comes, costs the events that name it (MT_STOP_LOST, counted), the slot is asked for a key
 * frame, and its dictionary forgets the digest, so that the stack comes again.  An event never
 * gets another's chain.
 *
 * A chain that came before is taught to the thread (collector/teach.h), whose events name it
 * from then on without a record.
 *
 * Contract
 *   Input:     records as they came, checked here; a process's space for the unwinder.
 *   Ownership: mt_stacks_new() gives an object for mt_stacks_free(), which takes NULL;
 *              segments and tree are borrowed.  Records are copied.
 *   Errors:    -ENOMEM; -EAGAIN from mt_stacks_push(): too much is waiting, merge first.
 *              A record that is none, or that does not verify, is no error: it is counted.
 *   Threads:   one.
 *   Bounds:    MT_STACKS_WAITING_BYTES of memory for records that wait; about 32 KiB and the
 *              budget for each slot that ever had a record that is not raw.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/call_tree.h"
#include "collector/segments.h"
#include "collector/space.h"
#include "collector/window.h"

#define MT_STACKS_WAITING_BYTES (64u * 1024 * 1024)

/* For mt_stacks_push(): whichever slot the record names. */
#define MT_STACKS_ANY_SLOT UINT32_MAX

struct mt_stacks;

struct mt_stacks_counts {
	uint64_t records; /* of all kinds, taken to be applied */
	uint64_t raw_records;
	uint64_t record_bytes;
	uint64_t window_bytes; /* what they stand for */
	uint64_t malformed;    /* not records, or damaged */
	uint64_t stale;	       /* against another reference than the decoder's */
	uint64_t mismatches;   /* bytes that do not hash to the digest */
	uint64_t duplicates;   /* came again, or too late to be put in order */
	uint64_t gaps;	       /* numbers of a slot skipped, in one generation */
	uint64_t dropped;      /* by mt_stacks_make_room() */
	uint64_t chains;       /* different ones that records were unwound to */
	uint64_t resolved;     /* events that named a stack */
	uint64_t learned;      /* of them, those that named a chain that was taught */
	uint64_t lost;	       /* of them and others, those whose stack did not come */
};

/* A window that was decoded, and what was made of it. */
struct mt_unwound_stack {
	const struct mt_window *window;
	const struct mt_space *space; /* by which it was unwound */
	uint64_t digest;
	uint32_t epoch;
	uint32_t node;
	bool raw; /* digest is of blocks: wire/digest.h */
};

int mt_stacks_new(struct mt_segments *segments, struct mt_call_tree *tree, struct mt_stacks **ret);
void mt_stacks_free(struct mt_stacks *stacks);

/* A stack record, from the BPF ring (MT_STACKS_ANY_SLOT) or from the ring of a slot, which then
 * has to be the record's. */
int mt_stacks_push(struct mt_stacks *stacks, uint32_t slot, const void *record, size_t len);

/* The slot has another owner, whose records are of that generation and later ones: what waits of
 * an older one is not of its space, and nobody is taught by it. */
int mt_stacks_claim(struct mt_stacks *stacks, uint32_t slot, uint16_t generation);

/* Drops what the slot with the most waiting records has of them: no event may ever ask for
 * them.  One that does gets MT_STOP_LOST. */
void mt_stacks_make_room(struct mt_stacks *stacks);

/* The node of an event's stack: half and word of its cell. */
int mt_stacks_resolve(struct mt_stacks *stacks, uint32_t slot, struct mt_space *space,
		      uint16_t name, uint32_t seq, uint32_t *ret_node);

/* From here on observe is told of each window, while mt_stacks_resolve() runs, which
 * returns its errors. */
void mt_stacks_observe(struct mt_stacks *stacks,
		       int (*observe)(void *ctx, const struct mt_unwound_stack *stack), void *ctx);

void mt_stacks_counts(const struct mt_stacks *stacks, struct mt_stacks_counts *ret);

static inline void mt_stacks_freep(struct mt_stacks **stacks)
{
	mt_stacks_free(*stacks);
}
