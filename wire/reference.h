/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * reference.h - what a slot remembers of its last emitted window
 *
 * Slots below MT_BPF_SLOTS of an eBPF run: a value of the mmapable BPF array
 * "references"; written by BPF (resync_asked and forgotten dictionary entries: by the
 * collector), mapped PROT_READ by the target.  All other slots: a memfd; written by the
 * shim, mapped read-write.
 *
 *   [0, 1536)      struct mt_reference
 *   [1536, 9728)   dictionary: u64[MT_DICTIONARY], in sets of MT_DICTIONARY_WAYS
 *   [9728, ...)    words: u64[budget_bytes / 8]
 *   then, in the memfd only: struct mt_scratch with its output and its copies of groups,
 *                  from a page of its own on (wire/scratch.h)
 *
 * A run without compression (MT_RUN_RAW, wire/control.h) has none of it.
 *
 * A window is [start, end): start is where the entry stub pushed its registers, end is at
 * most align_down(start, 512) + budget, and at most the stack's bound.  A group is 512
 * bytes of address space, aligned; group r of a reference (r < budget / 512) holds the
 * words of the one address group g with g mod (budget / 512) == r that the window has.
 * A group's range is the words of it inside the window, [lo, hi) of 0..64; 0, 0 when the
 * window does not have it.  Words outside the range stay in the reference, count as zero
 * in the group's digest and give no XOR word.
 *
 * seq is odd while the reference moves; seq / 2 counts the records that moved it, and is
 * what events and records call "seq".
 */
#include <linux/types.h>

#include "wire/control.h"

/* The words at a window's start, as the x86-64 entry stub leaves them: the callee-saved
 * registers of the function that called malloc, then malloc's return address.  The
 * caller's frame follows: its stack pointer after the return is start + 8 * 7. */
#define MT_SAVED_RBX 0
#define MT_SAVED_RBP 1
#define MT_SAVED_R12 2
#define MT_SAVED_R13 3
#define MT_SAVED_R14 4
#define MT_SAVED_R15 5
#define MT_SAVED_RIP 6
#define MT_SAVED_WORDS 7

#define MT_GROUP_BYTES 512
#define MT_GROUP_WORDS 64
#define MT_GROUPS_MAX (MT_BUDGET_MAX_BYTES / MT_GROUP_BYTES)

/* A digest is in one of the entries of the two sets that it has by itself.  Two, because
 * stacks that come in turn must not push each other out while there is room: 400 find theirs
 * 99 times in a hundred, with one set 220. */
#define MT_DICTIONARY 1024 /* entries */
#define MT_DICTIONARY_WAYS 8
#define MT_DICTIONARY_SETS (MT_DICTIONARY / MT_DICTIONARY_WAYS)
#define MT_REFERENCE_BYTES 1536
#define MT_DICTIONARY_OFFSET MT_REFERENCE_BYTES
#define MT_WORDS_OFFSET (MT_DICTIONARY_OFFSET + MT_DICTIONARY * 8)

/* What became of a slot's last probe: mt_answer.status. */
#define MT_PROBE_NONE 0
#define MT_PROBE_SENT 1	      /* a record is on the ring, the reference has moved */
#define MT_PROBE_REGISTERED 2 /* the registration probe was seen */
#define MT_PROBE_FULL 3	      /* no room on the ring: wait for the consumer, probe again */
#define MT_PROBE_FAULT 4      /* a page was not present: touch the window, probe again */
#define MT_PROBE_REFUSED 5    /* not the owner, or not a window */
#define MT_PROBE_BUSY 6	      /* another thread was in this slot */

struct mt_reference {
	__u64 seq;
	__u64 digest; /* of the window that was emitted last; 0: none, the next is a key frame */
	__u64 sum;    /* of the groups' parts of the digest, wire/digest.h */
	__u64 start;  /* of that window */
	__u64 end;
	__u32 epoch;	    /* of the process's mappings; no two have the same: mt_control.epochs */
	__u32 generation;   /* claims of the slot, and begins anew after an abandoned capture */
	__u32 entry;	    /* of the dictionary, which has digest */
	__u32 resync_asked; /* counted up by the collector: the next record is a key frame */
	__u32 resync_done;  /* the count that was obeyed last */
	__u32 busy;	    /* BPF: tid inside; moves by compare-and-swap */
	__u32 spare0[10];
	__u16 range[MT_GROUPS_MAX]; /* MT_RANGE(lo, hi) of each group */
	__u64 group_digest[MT_GROUPS_MAX];
	__u8 spare1[MT_REFERENCE_BYTES - 104 - MT_GROUPS_MAX * 10];
};

#define MT_RANGE(lo, hi) ((__u16)((lo) | (hi) << 8))
#define MT_RANGE_LO(range) ((__u8)(range))
#define MT_RANGE_HI(range) ((range) >> 8)

_Static_assert(sizeof(struct mt_reference) == MT_REFERENCE_BYTES,
	       "struct mt_reference changed size");

/*
 * The probe is a function of its own (preload/probe.S), alone in a section called "mt_probe"
 * so that the collector finds its file offset in a stripped file.  It begins with a 5-byte
 * nop, which Linux 6.18 makes a call of a page that it maps.  A fork's child has the call but,
 * in 6.18, not the page, and dies there unless it has renewed its text first
 * (mt_probe_renew()).
 *
 * Arguments, in registers that BPF reads:
 *
 *   rdi  slot | (u64)epoch << 32
 *   rsi  seq field of the reference as the shim read it before it compared; without
 *        compression, the seq that the record is to have; or MT_PROBE_REGISTER: the
 *        registration probe, the rest but the cookie is ignored
 *   rdx  groups of the reference whose words differ, bit r for group r below 64
 *   rcx  window start
 *   r8   window end
 *   r9   mt_control.cookie
 *   r10  groups 64 to 127
 */
#define MT_PROBE_REGISTER (~0ULL)
#define MT_PROBE_SECTION "mt_probe"
