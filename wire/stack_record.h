/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_record.h - an emitted window
 *
 * Written by:  bpf/capture.bpf.c, one to a record of the BPF ring "stacks";
 *              preload/capture.c, in MT_RECORD_STACK pieces of the thread's own ring
 * Read by:     collector/decode.c
 *
 * The head is followed, for each bit r of mask in rising order, by a 64-bit map of the
 * words of group r that differ, and by their XOR with the reference, lowest word first.
 * (MT_STACK_RAW: by the words of the window, start to end.)
 *
 *   DELTA     against the reference that ref_digest names; becomes the reference
 *   KEY       against zero; ref_digest is 0; becomes the reference, whose words outside
 *             the window's ranges become zero
 *   DETACHED  against zero, never becomes a reference; seq is a number of its own that
 *             events name (MT_STACK_DETACHED); its digest, known last, is in the last 8
 *             bytes of the record, head.digest is 0, and mask has a bit for every group
 *             that the window has
 *   RAW       the window itself; becomes the reference's digest and is in the dictionary,
 *             but moves no words
 */
#include <linux/types.h>

#define MT_STACK_DELTA 1
#define MT_STACK_KEY 2
#define MT_STACK_KIND_DETACHED 3
#define MT_STACK_RAW 4

struct mt_stack_record {
	__u32 len; /* of the record in bytes; a multiple of 8 */
	__u16 kind;
	__u16 slot;
	__u32 generation;
	__u32 seq; /* reference.seq / 2 once this record has moved it */
	__u64 time_ns;
	__u64 start;
	__u64 end;
	__u32 epoch;
	__u32 spare;
	__u64 ref_digest;
	__u64 digest; /* never 0, but for DETACHED */
	__u64 mask[2];
};

_Static_assert(sizeof(struct mt_stack_record) == 80, "struct mt_stack_record changed size");

#define MT_STACK_RECORD_MAX_BYTES(budget) (80 + (budget) + (budget) / 512 * 8 + 8)
