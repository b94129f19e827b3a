/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * scratch.h - where a slot's next stack record is made
 *
 * eBPF capture: a value of the BPF array "scratches", which no process maps.  Inline
 * capture: behind the words of the slot's reference, on pages of its own.  Written and
 * read by whoever encodes for the slot, one at a time; nothing in it outlives a capture.
 *
 * The record is complete where it lies: head, then the groups that changed.
 */
#include <linux/types.h>

#include "wire/reference.h"
#include "wire/stack_record.h"

struct mt_scratch {
	/* A group as it was read from the stack.  Twice as long as a group: the BPF
	 * verifier bounds the first word and the number of words apart. */
	__u64 live[2 * MT_GROUP_WORDS];
	/* The groups that the record changes in words, digest or range, and what these become. */
	__u64 touched[2];
	__u64 group_digest[MT_GROUPS_MAX];
	__u16 range[MT_GROUPS_MAX];
	__u64 seq; /* the record's number; half of the reference's seq once that has moved */
	__u64 sum;
	__u64 keep;    /* ~0; key frame: 0, nothing of the reference stays */
	__u64 mask[2]; /* the groups that are in the record */
	__u64 end;     /* of the window */
	__u64 n_out;   /* halves of words behind the record's head */
	__u64 cursor;  /* commit's: halves of them that are not done yet */
	__u32 resync;  /* the resync_asked that the record obeys */
	__u32 spare;
	__u64 cell_head; /* where the record goes on a ring as a blob, wire/ring.h */
	struct mt_stack_record record;
	/* __u32 out[], from mt_stack_head_bytes() behind the record's begin on */
	/* Inline, behind that: __u64 copies[budget_bytes / 8], each touched group of the window
	 * as it was read, words outside the range as zero. */
};

_Static_assert(sizeof(struct mt_scratch) == 2464, "struct mt_scratch changed size");

/* A group behind a record's head: at most all of its words, and two maps with all bytes,
 * which are 5 halves; the BPF verifier believes that it may be one more. */
#define MT_ENCODED_MAP_HALVES 6
#define MT_ENCODED_HALVES (2 * MT_GROUP_WORDS + MT_ENCODED_MAP_HALVES)

/* The most halves of words behind a record's head. */
static inline __attribute__((always_inline)) __u64 mt_scratch_out_halves(__u64 budget_bytes)
{
	return budget_bytes / MT_GROUP_BYTES * MT_ENCODED_HALVES;
}

/* With room for one group more than a record can have, because encoding writes all of a
 * group's halves through a pointer that moves only past those that are not 0. */
static inline __attribute__((always_inline)) __u64 mt_scratch_bytes(__u64 budget_bytes)
{
	return sizeof(struct mt_scratch) +
	       (mt_scratch_out_halves(budget_bytes) + MT_ENCODED_HALVES + 3) / 2 * 8;
}

/* With the copies, which BPF does without. */
static inline __attribute__((always_inline)) __u64 mt_scratch_inline_bytes(__u64 budget_bytes)
{
	return mt_scratch_bytes(budget_bytes) + budget_bytes;
}

static inline __attribute__((always_inline)) __u64 *mt_scratch_copies(struct mt_scratch *scratch,
								      __u64 budget_bytes)
{
	return (__u64 *)((char *)scratch + mt_scratch_bytes(budget_bytes));
}

static inline __attribute__((always_inline)) __u32 *mt_scratch_out(struct mt_scratch *scratch,
								   __u64 budget_bytes)
{
	return (__u32 *)((char *)&scratch->record + mt_stack_head_bytes(budget_bytes));
}
