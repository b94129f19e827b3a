/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * dwarf_cursor.h - the numbers of .eh_frame and .debug_frame, read one after the other
 *
 * Contract
 *   Input:     any bytes, [pos, end).
 *   Errors:    a number that does not lie in the bytes, or a LEB128 number of more than
 *              64 bits, reads as 0, sets failed and moves pos to the end, so that a loop
 *              "while there are bytes" ends; look at failed before using what was read.
 *   Bounds:    nothing is read at or behind end; a LEB128 number has 10 bytes at most.
 *
 * Little-endian, as the host: there is no other that the unwinder knows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the numbers are copied as they are");

struct mt_dwarf_cursor {
	const uint8_t *pos, *end;
	bool failed;
};

static inline size_t mt_dwarf_left(const struct mt_dwarf_cursor *cur)
{
	return (size_t)(cur->end - cur->pos);
}

static inline void mt_dwarf_fail(struct mt_dwarf_cursor *cur)
{
	cur->failed = true;
	cur->pos = cur->end;
}

/* The next n bytes; NULL if there are fewer. */
static inline const uint8_t *mt_dwarf_bytes(struct mt_dwarf_cursor *cur, uint64_t n)
{
	const uint8_t *at = cur->pos;

	if (n > mt_dwarf_left(cur)) {
		mt_dwarf_fail(cur);
		return NULL;
	}
	cur->pos += n;
	return at;
}

static inline uint64_t mt_dwarf_unsigned(struct mt_dwarf_cursor *cur, unsigned int width)
{
	const uint8_t *at = mt_dwarf_bytes(cur, width);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, width);
	return value;
}

/* width: 1, 2, 4 or 8 */
static inline int64_t mt_dwarf_signed(struct mt_dwarf_cursor *cur, unsigned int width)
{
	unsigned int unused = 64 - 8 * width;

	return (int64_t)(mt_dwarf_unsigned(cur, width) << unused) >> unused;
}

static inline uint8_t mt_dwarf_u8(struct mt_dwarf_cursor *cur)
{
	return (uint8_t)mt_dwarf_unsigned(cur, 1);
}

static inline uint64_t mt_dwarf_uleb(struct mt_dwarf_cursor *cur)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = mt_dwarf_u8(cur);

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	mt_dwarf_fail(cur);
	return 0;
}

static inline int64_t mt_dwarf_sleb(struct mt_dwarf_cursor *cur)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = mt_dwarf_u8(cur);

		if (shift == 63 && byte && byte != 0x7f)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift < 57 && (byte & 0x40))
			value |= ~0ULL << (shift + 7);
		return (int64_t)value;
	}
	mt_dwarf_fail(cur);
	return 0;
}
