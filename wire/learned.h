/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * learned.h - what the collector tells a thread of the chains that it has had already
 *
 * A thread that finds the chain of its stack among these sends the chain's name in the event,
 * and neither compares its window nor makes a record nor probes.  It walks up its stack with
 * the rows of the code that the collector walked through before, and so comes by the same
 * words to the same return addresses.  These, in order, with how the walk ended, are the
 * chain; what it is called is found by their digest.
 *
 * An area of each slot, in a memfd that only the collector can write and that the target maps
 * PROT_READ:
 *
 *   [0, 4096)        struct mt_learned
 *   then             struct mt_learned_entry rows[MT_LEARNED_ROWS]: key: a return address;
 *                    value: MT_LEARNED_ROW(), how to get to its function's caller
 *   then             struct mt_learned_entry chains[MT_LEARNED_CHAINS]: key: a digest;
 *                    value: the chain's name
 *
 * An entry is at its key's place or at one of the next MT_LEARNED_PROBES - 1.
 *
 * All that is in an area is true for one epoch of one process (wire/reference.h).  Writer, for
 * another epoch: seq + 1, all keys 0, epoch, seq + 1.  To replace an entry: key 0, value, key.
 * Reader: seq, even, and the epoch its own; keys before values and keys again; seq as before.
 * In between a key stands for one value only, so that nothing more is needed.  A reader never
 * waits: what it does not find, or finds moved, is not known.
 *
 * The digest is the polynomial whose coefficients are the return addresses, the innermost
 * first, and the end, at the run's random point modulo 2^61 - 1: two chains of up to n frames
 * have the same one with a probability of n / 2^61, whatever they are (Carter and Wegman,
 * "Universal classes of hash functions", 1979).
 */
#include <linux/types.h>

#include "wire/control.h"
#include "wire/reference.h"

#define MT_LEARNED_ROWS 8192
#define MT_LEARNED_CHAINS 16384
#define MT_LEARNED_PROBES 4
/* Longer chains are not learned. */
#define MT_LEARNED_FRAMES 256

struct mt_learned {
	__u32 seq;    /* odd while the area is emptied */
	__u32 epoch;  /* that all of it is true for */
	__u32 taught; /* 0: nothing, there is nothing to look up */
	__u32 spare0;
	__u64 point; /* of the digests: above 0, below 2^61 - 1 */
	__u8 spare1[MT_PAGE_BYTES - 24];
};

struct mt_learned_entry {
	__u64 key; /* 0: none */
	__u64 value;
};

_Static_assert(sizeof(struct mt_learned) == MT_PAGE_BYTES, "struct mt_learned changed size");

#define MT_LEARNED_BYTES \
	(MT_PAGE_BYTES + (MT_LEARNED_ROWS + MT_LEARNED_CHAINS) * sizeof(struct mt_learned_entry))

/*
 * A row: where the caller's frame is.  The return address is at cfa - 8 and the caller's rbp at
 * cfa + 8 * rbp, or unchanged if that is 0; of CFA_AT_RBP it is where rbp points to.
 */
#define MT_LEARNED_RSP 1	/* cfa = rsp + 8 * offset */
#define MT_LEARNED_RBP 2	/* cfa = rbp + 8 * offset */
#define MT_LEARNED_CFA_AT_RBP 3 /* cfa = *(rbp + 8 * offset) */
#define MT_LEARNED_END 4	/* there is no caller */

#define MT_LEARNED_ROW(kind, rbp, offset) \
	((__u64)(kind) | (__u64)(__u8)(rbp) << 8 | (__u64)(__u16)(offset) << 16)
#define MT_LEARNED_ROW_KIND(row) ((__u8)(row))
#define MT_LEARNED_ROW_RBP(row) ((__s8)((row) >> 8))
#define MT_LEARNED_ROW_OFFSET(row) ((__s16)((row) >> 16))

/* How a chain ended: a coefficient that no address is. */
#define MT_LEARNED_ENDED 1     /* at the outermost function */
#define MT_LEARNED_TRUNCATED 2 /* at the window's end */

static inline const struct mt_learned_entry *mt_learned_rows(const struct mt_learned *learned)
{
	return (const struct mt_learned_entry *)((const char *)learned + MT_PAGE_BYTES);
}

static inline const struct mt_learned_entry *mt_learned_chains(const struct mt_learned *learned)
{
	return mt_learned_rows(learned) + MT_LEARNED_ROWS;
}

/* A key's place among n, a power of two. */
static inline __u64 mt_learned_place(__u64 key, __u64 n)
{
	return (key * 0x9e3779b97f4a7c15ULL >> 32) & (n - 1);
}

#define MT_LEARNED_PRIME ((1ULL << 61) - 1)

/* A product modulo the prime, of numbers below 2^61; below 2^61, not always the least one. */
static inline __u64 mt_learned_times(__u64 a, __u64 b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	__u64 sum = ((__u64)product & MT_LEARNED_PRIME) + (__u64)(product >> 61);

	return sum >= MT_LEARNED_PRIME ? sum - MT_LEARNED_PRIME : sum;
}

/*
 * The digest of a chain, from the outermost frame to the innermost: it begins as how the chain
 * ends, and each frame makes another of it.
 */
static inline __u64 mt_learned_digest_frame(__u64 outer, __u64 pc, __u64 point)
{
	__u64 sum = mt_learned_times(outer, point) + (pc & MT_LEARNED_PRIME);

	return sum >= MT_LEARNED_PRIME ? sum - MT_LEARNED_PRIME : sum;
}

/* As a key, which is not 0. */
static inline __u64 mt_learned_digest_key(__u64 digest)
{
	return digest + 1;
}

static inline int mt_learned_find(const struct mt_learned_entry *entries, __u64 n, __u64 key,
				  __u64 *ret)
{
	__u64 place = mt_learned_place(key, n);

	for (int i = 0; i < MT_LEARNED_PROBES; i++) {
		const struct mt_learned_entry *entry = &entries[(place + i) & (n - 1)];

		if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != key)
			continue;
		*ret = __atomic_load_n(&entry->value, __ATOMIC_ACQUIRE);
		return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key;
	}
	return 0;
}
