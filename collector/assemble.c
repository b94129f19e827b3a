/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * assemble.c - see assemble.h for the contract
 *
 * Invariants
 *   - Pieces of one record come in the order of their index; those of another, whose
 *     capture interrupted it, may lie between.
 */
#include "collector/assemble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mt_assembler_done(struct mt_assembler *a)
{
	for (int i = 0; i < MT_ASSEMBLE_PARTS; i++)
		free(a->parts[i].bytes);
	*a = (struct mt_assembler){ 0 };
}

void mt_assembler_restart(struct mt_assembler *a)
{
	for (int i = 0; i < MT_ASSEMBLE_PARTS; i++) {
		a->abandoned += a->parts[i].used;
		a->parts[i].used = 0;
	}
}

static struct mt_part *place_for(struct mt_assembler *a)
{
	struct mt_part *oldest = &a->parts[0];

	for (int i = 0; i < MT_ASSEMBLE_PARTS; i++) {
		if (!a->parts[i].used)
			return &a->parts[i];
		if (a->parts[i].age < oldest->age)
			oldest = &a->parts[i];
	}
	a->abandoned++;
	oldest->used = 0;
	return oldest;
}

static struct mt_part *begin(struct mt_assembler *a, uint8_t kind, uint16_t id, uint16_t pieces)
{
	size_t len = (size_t)pieces * MT_PIECE_BYTES;
	struct mt_part *part = place_for(a);

	if (part->room < len) {
		char *bytes = realloc(part->bytes, len);

		if (!bytes)
			return NULL;
		part->bytes = bytes;
		part->room = (uint32_t)len;
	}
	part->id = id;
	part->pieces = pieces;
	part->next = 0;
	part->kind = kind;
	part->used = 1;
	part->age = ++a->age;
	return part;
}

static struct mt_part *find(struct mt_assembler *a, uint8_t kind, uint16_t id, uint16_t pieces,
			    uint16_t index)
{
	for (int i = 0; i < MT_ASSEMBLE_PARTS; i++) {
		struct mt_part *part = &a->parts[i];

		if (part->used && part->id == id && part->kind == kind && part->pieces == pieces &&
		    part->next == index)
			return part;
	}
	return NULL;
}

int mt_assembler_add(struct mt_assembler *a, const struct mt_cell *cell, void **ret,
		     size_t *ret_len)
{
	uint8_t kind = MT_CELL_KIND(cell->head);
	uint16_t index = MT_CELL_HALF(cell->head);
	uint16_t id = (uint16_t)(MT_CELL_WORD(cell->head) >> 16);
	uint16_t pieces = (uint16_t)MT_CELL_WORD(cell->head);
	struct mt_part *part;

	if (!kind || !pieces ||
	    (size_t)pieces * MT_PIECE_BYTES > MT_RECORD_MAX_BYTES + MT_PIECE_BYTES)
		return -EBADMSG;
	if (index == 0) {
		part = begin(a, kind, id, pieces);
		if (!part)
			return -ENOMEM;
	} else {
		part = find(a, kind, id, pieces, index);
		if (!part)
			return -EBADMSG;
	}
	memcpy(part->bytes + (size_t)part->next * MT_PIECE_BYTES, cell->w, MT_PIECE_BYTES);
	if (++part->next < part->pieces)
		return 0;
	part->used = 0;
	*ret = part->bytes;
	*ret_len = (size_t)part->pieces * MT_PIECE_BYTES;
	return part->kind;
}
