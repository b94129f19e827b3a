/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * space.h - what code lies where in an address space, as it changes
 *
 * Contract
 *   Input:     ranges as the target told them.  A range that is added takes the place of
 *              whatever it overlaps: that must have been unmapped in between.
 *   Ownership: a space holds a reference of its own to each image.  What
 *              mt_space_find() gives is valid until the space changes.
 *   Errors:    -EINVAL: an empty range; -ENOMEM; the space is as before then.
 *   Threads:   one at a time for each space.
 *   Bounds:    a look-up is a binary search; an add moves the ranges above.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/image.h"

struct mt_space_range {
	uint64_t start, end;	/* run-time addresses */
	uint64_t bias;		/* run-time address - ELF virtual address */
	struct mt_image *image; /* NULL: code without unwind information */
	uint32_t module;
};

struct mt_space {
	struct mt_space_range *ranges; /* sorted, without overlap */
	size_t len, capacity;
	/* Names the content: it moves at each change, no two contents have the same, and a
	 * copy has its original's until one of them changes.  What was remembered of an
	 * address under a stamp is true for each space with that stamp. */
	uint64_t stamp;
};

void mt_space_init(struct mt_space *space);
void mt_space_done(struct mt_space *space);

/* range->image: a reference is taken. */
int mt_space_add(struct mt_space *space, const struct mt_space_range *range);

void mt_space_clear(struct mt_space *space);

/* The content of from, as fork() copies it; to is initialised, and loses what it had. */
int mt_space_copy(struct mt_space *to, const struct mt_space *from);

/* Makes to what from is, which has nothing then. */
void mt_space_move(struct mt_space *to, struct mt_space *from);

/* NULL: nothing is known there. */
const struct mt_space_range *mt_space_find(const struct mt_space *space, uint64_t pc);
