/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * recent.h - of which window a thread has sent a record of a chain
 *
 * The collector teaches a thread a chain (learned.h) a while after its record was sent.  By then
 * the thread may have come by it many times, each time with other words around the return
 * addresses.  It knows the chain by its key as soon as it has the rows: an event names the window
 * that was sent, as long as the slot's dictionary has that.
 *
 * Contract
 *   Input:     chains with a key; digests of windows that have that chain
 *   Ownership: the table is the slot's, memory that is zero at first
 *   Errors:    none: what is not known is not found, what there is no room for takes another's
 *              place
 *   Threads:   the slot's.  A handler may come in at any instruction, and be left by a jump: an
 *              entry that is half of one chain and half of another is found by no key.
 *   Bounds:    MT_RECENT_ENTRIES
 */
#include "preload/learned.h"

#define MT_RECENT_ENTRIES 256

struct mt_recent_entry {
	uint64_t mixed; /* mt_recent_mix() of the digest */
	uint64_t digest;
};

struct mt_recent {
	struct mt_recent_entry entries[MT_RECENT_ENTRIES];
};

/* In another epoch the key is another chain's. */
static inline uint64_t mt_recent_mix(const struct mt_chain *chain, uint64_t digest)
{
	return chain->key ^ chain->epoch * 0x9e3779b97f4a7c15ULL ^ digest;
}

static inline uint64_t mt_recent_place(const struct mt_chain *chain)
{
	return mt_learned_chain_place(chain->key) % MT_RECENT_ENTRIES;
}

/* The digest of a window with the chain, or 0. */
static inline uint64_t mt_recent_find(const struct mt_recent *recent, const struct mt_chain *chain)
{
	const volatile struct mt_recent_entry *entry = &recent->entries[mt_recent_place(chain)];
	uint64_t digest = entry->digest;

	return entry->mixed == mt_recent_mix(chain, digest) ? digest : 0;
}

static inline void mt_recent_put(struct mt_recent *recent, const struct mt_chain *chain,
				 uint64_t digest)
{
	volatile struct mt_recent_entry *entry = &recent->entries[mt_recent_place(chain)];

	entry->mixed = mt_recent_mix(chain, digest);
	entry->digest = digest;
}
