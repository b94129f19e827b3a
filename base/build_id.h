/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * build_id.h - the build-id among an object's notes, for whoever reads it: the shim in memory,
 * the collector in the file; the two have to find the same
 *
 * Contract
 *   Input:     the bytes of a PT_NOTE segment, of any content and alignment, and its p_align.
 *   Ownership: what is returned lies in the notes.
 *   Errors:    NULL: none that has from 1 to max bytes.
 *   Threads:   any; no function of the C library is called.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_note {
	uint32_t name_bytes, desc_bytes, type;
} __attribute__((packed));

/* Beginning and end of a note's content are aligned, seen from where the segment begins. */
static inline uint64_t mt_note_align(uint64_t at, uint64_t align)
{
	return (at + align - 1) & -align;
}

static inline const uint8_t *mt_build_id_find(const uint8_t *notes, size_t len, uint64_t align,
					      uint32_t max, uint32_t *ret_bytes)
{
	uint64_t at = 0;

	align = align == 8 ? 8 : 4;
	while (at <= len && len - at >= sizeof(struct mt_note)) {
		const struct mt_note *note = (const void *)(notes + at);
		uint64_t name = at + sizeof(*note);
		uint64_t desc = mt_note_align(name + note->name_bytes, align);

		if (desc > len || note->desc_bytes > len - desc)
			return NULL;
		if (note->type == NT_GNU_BUILD_ID && note->name_bytes == sizeof(ELF_NOTE_GNU) &&
		    notes[name] == 'G' && notes[name + 1] == 'N' && notes[name + 2] == 'U' &&
		    !notes[name + 3] && note->desc_bytes && note->desc_bytes <= max) {
			*ret_bytes = note->desc_bytes;
			return notes + desc;
		}
		at = mt_note_align(desc + note->desc_bytes, align);
	}
	return NULL;
}

/* Of no bytes are two that are not there; neither is looked at then. */
static inline bool mt_build_id_equal(const uint8_t *a, uint32_t a_bytes, const uint8_t *b,
				     uint32_t b_bytes)
{
	if (a_bytes != b_bytes)
		return false;
	for (uint32_t i = 0; i < a_bytes; i++)
		if (a[i] != b[i])
			return false;
	return true;
}
