/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * scratch.h - where a slot's next stack record is made
 *
 * eBPF capture: a value of the BPF array "scratches", which no process maps.  Inline
 * capture: behind the words of the slot's reference, on pages of its own.  Written and
 * read by whoever encodes for the slot, one at a time; nothing in it outlives a capture.
 *
 * The record is complete where it lies: record, then its words.  Behind the most words
 * that a window can need there is room for one group more, because encoding writes a
 * group's 64 XOR words through a pointer that moves only past those that are not 0.
 */
#include <linux/types.h>

#include "wire/reference.h"
#include "wire/stack_record.h"

struct mt_scratch {
	/* A group as it was read from the stack.  Twice as long as a group: the BPF
	 * verifier bounds the first word and the number of words apart. */
	__u64 live[2 * MT_GROUP_WORDS];
	/* The groups that the record changes in digest or range, and what these become. */
	__u64 touched[2];
	__u64 group_digest[MT_GROUPS_MAX];
	__u16 range[MT_GROUPS_MAX];
	__u64 seq; /* the record's number; half of the reference's seq once that has moved */
	__u64 sum;
	__u64 keep;   /* ~0; key frame: 0, nothing of the reference stays */
	__u64 n_out;  /* words behind the record's head */
	__u64 cursor; /* commit's: words of them that are done */
	__u32 resync; /* the resync_asked that the record obeys */
	__u32 spare;
	struct mt_stack_record record;
	/* __u64 out[mt_scratch_out_words(budget) + MT_SCRATCH_SLACK_WORDS]; */
};

_Static_assert(sizeof(struct mt_scratch) == 2448, "struct mt_scratch changed size");

#define MT_SCRATCH_SLACK_WORDS (1 + MT_GROUP_WORDS)

/* The most words behind a record's head: every word of a window, a bitmap for each group. */
static inline __attribute__((always_inline)) __u64 mt_scratch_out_words(__u64 budget_bytes)
{
	return budget_bytes / 8 + budget_bytes / MT_GROUP_BYTES;
}

static inline __attribute__((always_inline)) __u64 mt_scratch_bytes(__u64 budget_bytes)
{
	return sizeof(struct mt_scratch) +
	       (mt_scratch_out_words(budget_bytes) + MT_SCRATCH_SLACK_WORDS) * 8;
}

static inline __attribute__((always_inline)) __u64 *mt_scratch_out(struct mt_scratch *scratch)
{
	return (__u64 *)(scratch + 1);
}
