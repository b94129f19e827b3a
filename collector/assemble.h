/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * assemble.h - pieces of a ring, wire/ring.h, put together again
 *
 * Contract
 *   Input:     cells of type PIECE of one ring, in ring order; nothing in them is trusted.
 *   Ownership: an assembler of zeros is an empty one, so that those of rings that are never
 *              written need no memory; mt_assembler_done() makes it one again.  A record's
 *              bytes are the assembler's, until the next piece is added.
 *   Errors:    -EBADMSG: not a piece of anything (its beginning was never seen, or it
 *              repeats); -ENOMEM.  The assembler stays usable.
 *   Threads:   one at a time.
 *   Bounds:    MT_ASSEMBLE_PARTS records of up to MT_RECORD_MAX_BYTES.  A record that was
 *              abandoned (its writer was left by a longjmp) makes way when the place is
 *              needed, the oldest first.
 */
#include <stddef.h>
#include <stdint.h>

#include "wire/ring.h"

#define MT_ASSEMBLE_PARTS 4

struct mt_part {
	char *bytes;
	uint32_t room;
	uint16_t id, pieces, next;
	uint8_t kind;
	uint8_t used;
	uint64_t age;
};

struct mt_assembler {
	struct mt_part parts[MT_ASSEMBLE_PARTS];
	uint64_t age;
	uint64_t abandoned; /* records that made way */
};

void mt_assembler_done(struct mt_assembler *assembler);

/* Forgets what is not complete: another thread has the ring now. */
void mt_assembler_restart(struct mt_assembler *assembler);

/* Returns the record's kind when this piece completes one, 0 when it does not. */
int mt_assembler_add(struct mt_assembler *assembler, const struct mt_cell *cell, void **ret,
		     size_t *ret_len);
