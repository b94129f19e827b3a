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
 * Of each chunk, in a memfd that only the collector can write and that the target maps
 * PROT_READ:
 *
 *   [0, 4096)        struct mt_learned: which area is a slot's, and for what epoch it is true
 *   then             MT_CHUNK_SLOTS areas, each of
 *                    struct mt_learned_entry rows[MT_LEARNED_ROWS]: key: a return address;
 *                    value: MT_LEARNED_ROW(), how to get to its function's caller
 *                    struct mt_learned_entry chains[MT_LEARNED_CHAINS]: key: a digest;
 *                    value: the chain's name; in use are the first places[area] of them, as
 *                    few as serve, because each look-up goes to another
 *
 * An entry is at its key's place or at one of the next MT_LEARNED_PROBES - 1, behind no empty one.
 *
 * All that is in an area is true for one epoch (wire/reference.h); the slots of the processes
 * that are in that epoch share it.  Writer, for another epoch of a slot: seq + 1, area and epoch,
 * seq + 1; in between it may empty the area that nobody has then.  For another number of places:
 * seq + 1 of all slots that have the area, all chains anew, seq + 1.  To replace an entry: key 0,
 * value, key.  Reader: seq, even, and the epoch its own; keys before values and keys again; seq as
 * before.  In an epoch a key stands for one value only, so that nothing more is needed.  A reader
 * never waits: what it does not find, or finds moved, is not known.
 *
 * The digest is the polynomial whose coefficients are how the chain ends, and then the return
 * addresses, the outermost first, at the run's random point modulo 2^61 - 1: two chains of up to
 * n frames have the same one with a probability of n / 2^61, whatever they are (Carter and
 * Wegman, "Universal classes of hash functions", 1979).
 */
#include <linux/types.h>

#include "wire/control.h"
#include "wire/reference.h"

#define MT_LEARNED_ROWS 8192
#define MT_LEARNED_CHAINS 16384
#define MT_LEARNED_CHAINS_MIN 1024
#define MT_LEARNED_PROBES 16
/* Longer chains are not learned. */
#define MT_LEARNED_FRAMES 256

/* Of a slot; a cache line, as each is read by another thread. */
struct mt_learned_slot {
	__u32 seq; /* odd while the slot gets another area, or other places */
	__u32 epoch;
	__u32 area; /* below MT_CHUNK_SLOTS */
	__u32 spare[13];
};

struct mt_learned {
	struct mt_learned_slot slots[MT_CHUNK_SLOTS];
	__u32 places[MT_CHUNK_SLOTS];	 /* for an area's chains, a power of two; 0: it has none */
	__u64 powers[MT_LEARNED_FRAMES]; /* of the point, which is the first */
	__u8 spare[MT_PAGE_BYTES - 68 * MT_CHUNK_SLOTS - 8 * MT_LEARNED_FRAMES];
};

struct mt_learned_entry {
	__u64 key; /* 0: none */
	__u64 value;
};

_Static_assert(sizeof(struct mt_learned) == MT_PAGE_BYTES, "struct mt_learned changed size");

#define MT_LEARNED_ENTRIES (MT_LEARNED_ROWS + MT_LEARNED_CHAINS)
/* Of a chunk. */
#define MT_LEARNED_BYTES \
	(MT_PAGE_BYTES + MT_CHUNK_SLOTS * MT_LEARNED_ENTRIES * sizeof(struct mt_learned_entry))

/*
 * A row: where the caller's frame is, in bytes.  The return address is at cfa - 8 and the caller's
 * rbp at cfa + rbp, or unchanged if that is 0; of CFA_AT_RBP it is where rbp points to.
 */
#define MT_LEARNED_RSP 1	/* cfa = rsp + offset, which is above 0 */
#define MT_LEARNED_RBP 2	/* cfa = rbp + offset */
#define MT_LEARNED_CFA_AT_RBP 3 /* cfa = *(rbp + offset) */
#define MT_LEARNED_END 4	/* there is no caller */

/* rbp: 24 bits. */
#define MT_LEARNED_ROW(kind, rbp, offset) \
	((__u64)(kind) | (__u64)((__u32)(rbp) << 8) | (__u64)(__u32)(offset) << 32)
#define MT_LEARNED_ROW_KIND(row) ((__u8)(row))
#define MT_LEARNED_ROW_RBP(row) ((__s64)((__s32)(row) >> 8))
#define MT_LEARNED_ROW_OFFSET(row) ((__s64)(row) >> 32)

/* How a chain ended: a coefficient that no address is. */
#define MT_LEARNED_ENDED 1     /* at the outermost function */
#define MT_LEARNED_TRUNCATED 2 /* at the window's end */

/* The entries of an area: rows, then chains. */
static inline const struct mt_learned_entry *mt_learned_rows(const struct mt_learned *learned,
							     __u32 area)
{
	return (const struct mt_learned_entry *)((const char *)learned + MT_PAGE_BYTES) +
	       area * MT_LEARNED_ENTRIES;
}

static inline const struct mt_learned_entry *mt_learned_chains(const struct mt_learned *learned,
							       __u32 area)
{
	return mt_learned_rows(learned, area) + MT_LEARNED_ROWS;
}

/* Where an entry is looked for first, before it is taken modulo their number.  Return addresses lie
 * no nearer to each other than this tells apart. */
static inline __u64 mt_learned_row_place(__u64 pc)
{
	return pc >> 2;
}

/* Digests of chains that differ in one frame are steps of one width: not so their places. */
static inline __u64 mt_learned_chain_place(__u64 key)
{
	return (key ^ key >> 32) * 0x9e3779b97f4a7c15ULL >> 32;
}

#define MT_LEARNED_PRIME ((1ULL << 61) - 1)

/* A number modulo the prime: not the least one, but below 2^61 + 8. */
static inline __u64 mt_learned_fold(__u64 n)
{
	return (n & MT_LEARNED_PRIME) + (n >> 61);
}

/* A product modulo the prime, of numbers below 2^61 + 8. */
static inline __u64 mt_learned_times(__u64 a, __u64 b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return mt_learned_fold(((__u64)product & MT_LEARNED_PRIME) + (__u64)(product >> 61));
}

/*
 * The digest of a chain: it begins as how the chain ends, and each frame, from the outermost
 * inwards, makes another of it; power: that of the frame's place, powers[0] for the outermost.
 */
static inline __u64 mt_learned_digest_frame(__u64 outer, __u64 pc, __u64 power)
{
	return mt_learned_fold(outer + mt_learned_times(mt_learned_fold(pc), power));
}

/* As a key: the least number, and 1, so that it is not 0. */
static inline __u64 mt_learned_digest_key(__u64 digest)
{
	return (digest >= MT_LEARNED_PRIME ? digest - MT_LEARNED_PRIME : digest) + 1;
}

/* The value of the key, if that is the entry's. */
static inline int mt_learned_value(const struct mt_learned_entry *entry, __u64 key, __u64 *ret)
{
	if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != key)
		return 0;
	*ret = __atomic_load_n(&entry->value, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key;
}

/* Among n entries, a power of two. */
static inline int mt_learned_find(const struct mt_learned_entry *entries, __u64 n, __u64 place,
				  __u64 key, __u64 *ret)
{
	for (int i = 0; i < MT_LEARNED_PROBES; i++) {
		const struct mt_learned_entry *entry = &entries[(place + i) & (n - 1)];

		if (mt_learned_value(entry, key, ret))
			return 1;
		if (!__atomic_load_n(&entry->key, __ATOMIC_RELAXED))
			return 0;
	}
	return 0;
}

static inline int mt_learned_find_row(const struct mt_learned_entry *rows, __u64 pc, __u64 *ret)
{
	return mt_learned_find(rows, MT_LEARNED_ROWS, mt_learned_row_place(pc), pc, ret);
}

static inline int mt_learned_find_chain(const struct mt_learned_entry *chains, __u64 places,
					__u64 key, __u64 *ret)
{
	return mt_learned_find(chains, places, mt_learned_chain_place(key), key, ret);
}
