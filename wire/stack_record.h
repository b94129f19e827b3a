/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_record.h - an emitted window
 *
 * Written by:  bpf/capture.bpf.c, one to a record of the BPF ring "stacks";
 *              preload/capture.c, in a MT_RECORD_STACK blob or pieces of the thread's ring
 * Read by:     collector/decode.c
 *
 *   DELTA  against the reference that ref_digest names; becomes the reference.  A group
 *          that both windows have, but of another address, is against zero
 *   KEY    against zero; ref_digest is 0; becomes the reference, whose words outside the
 *          window's ranges become zero
 *   RAW    the window itself; never becomes a reference, and is in no dictionary: a capture
 *          that interrupts a capture, a window that BPF can not come to, and all of a run
 *          without compression.  seq is a number
 *          of its own that events name (MT_STACK_ALONE), from mt_thread.alone; mask is 0, and
 *          the digest is that of raw windows (wire/digest.h)
 *
 * DELTA and KEY: the head, which mask[1] is a part of where budgets are above 32 KiB, is
 * followed, for each bit r of mask in rising order, by what differs in group r, in halves of
 * words (32 bits): the XOR with the reference of each half that differs, in the order of
 * words, a word's low half before its high one; then which these are, two maps of 64 bits,
 * of low halves and of high ones, each without its bytes that are 0: the other bytes of the
 * first, lowest first, those of the second, padding to a multiple of 4 bytes less 2, a byte
 * whose bit j says that the first map has its byte j here, one that says so of the second.
 * So a group is read from its end, and the record's groups from the last to the first.
 * pad_halves halves without a meaning make the record a multiple of 8 bytes.
 *
 * RAW: the head is followed by the window's words, start to end, and the digest, which its
 * writer may know last: head.digest is 0.
 *
 * check is over the head's other words, so that a damaged head is never believed: slot and
 * seq say which reference is meant.
 */
#include <linux/types.h>

#include "wire/reference.h"

#define MT_STACK_DELTA 1
#define MT_STACK_KEY 2
#define MT_STACK_RAW 3

struct mt_stack_record {
	__u16 len_words; /* of the record, in 8 bytes */
	__u16 slot;
	__u16 entry; /* of the slot's dictionary, which has the digest from here on */
	__u8 kind;
	__u8 pad_halves;    /* 0 or 1 */
	__u32 seq;	    /* reference.seq / 2 once this record has moved it */
	__u16 generation;   /* the dictionary was empty when it began; no number is skipped in it */
	__u16 window_words; /* end - start, in 8 bytes */
	__u64 start;
	__u32 epoch;
	__u32 ref_digest; /* its low half */
	__u64 digest;	  /* never 0, but for RAW */
	__u32 time;	  /* BPF: CLOCK_MONOTONIC ns / 2^MT_STACK_TIME_SHIFT, rounded down */
	__u32 check;
	__u64 mask[2];
};

#define MT_STACK_TIME_SHIFT 16

/* A group's two maps of 8 bytes each, their two indices, padding. */
#define MT_STACK_MAPS_MAX_BYTES 20

_Static_assert(sizeof(struct mt_stack_record) == 64, "struct mt_stack_record changed size");

/* The head's length: mask[1] is there only if the budget has groups for it. */
static inline __attribute__((always_inline)) __u64 mt_stack_head_bytes(__u64 budget_bytes)
{
	return sizeof(struct mt_stack_record) - (budget_bytes > 32 * 1024 ? 0 : 8);
}

/* The most bytes that a record has: every word of a window differs, in both halves. */
static inline __attribute__((always_inline)) __u64 mt_stack_record_max_bytes(__u64 budget_bytes)
{
	return sizeof(struct mt_stack_record) + budget_bytes +
	       budget_bytes / MT_GROUP_BYTES * MT_STACK_MAPS_MAX_BYTES + 8;
}

static inline __attribute__((always_inline)) __u64
mt_stack_end(const struct mt_stack_record *record)
{
	return record->start + (__u64)record->window_words * 8;
}

static inline __attribute__((always_inline)) __u64 mt_stack_mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9E3779B185EBCA87ULL;
	return h ^ h >> 32;
}

/* What check has to be; mask1: 0 where the head does not have it. */
static inline __attribute__((always_inline)) __u32
mt_stack_check(const struct mt_stack_record *record, __u64 mask1)
{
	typedef __u64 __attribute__((may_alias)) word;
	const word *w = (const word *)record;
	__u64 h = mt_stack_mix(0, w[0]);

	h = mt_stack_mix(h, w[1]);
	h = mt_stack_mix(h, w[2]);
	h = mt_stack_mix(h, w[3]);
	h = mt_stack_mix(h, w[4]);
	h = mt_stack_mix(h, record->time);
	h = mt_stack_mix(h, record->mask[0]);
	return mt_stack_mix(h, mask1);
}
