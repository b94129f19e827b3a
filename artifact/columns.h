/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * columns.h - one field of many rows, as bytes
 *
 * Contract
 *   Input:     appending: at most MT_BLOCK_ROWS values between two resets, all with the
 *              function that belongs to the column's encoding.  Decoding: any bytes.
 *   Ownership: a column owns its bytes, from _init to _done.
 *   Errors:    -ENOMEM; decoding: -EBADMSG if the bytes are not exactly the values asked
 *              for, -ENOTSUP if the encoding is not known.  Appending can not fail.
 *   Threads:   one at a time.
 *   Bounds:    MT_COLUMN_BYTES each.  Decoding takes time in proportion to the values and
 *              the bytes given, whatever they say.
 *
 * Encodings.  A varint is the value in groups of 7 bits, lowest first, the top bit of each
 * byte but the last set.
 *   varint  each value as a varint
 *   delta   the difference to the value before (the first: to 0), mod 2^64, its sign in
 *           the lowest bit, as a varint
 *   runs    a value, and how often it comes again after that, each as a varint
 */
#include <stddef.h>
#include <stdint.h>

#include "artifact/layout.h"

#define MT_VARINT_MAX_BYTES 10
#define MT_COLUMN_BYTES (MT_BLOCK_ROWS * (MT_VARINT_MAX_BYTES + 1))

struct mt_column {
	const char *name;
	const char *encoding;
	uint8_t *bytes;
	size_t len;
	uint64_t last;
	uint64_t run; /* rows since last was appended, itself included; 0: none */
};

int mt_column_init(struct mt_column *column, const char *name, const char *encoding);
void mt_column_done(struct mt_column *column);

/* Makes an open run part of bytes. */
void mt_column_end(struct mt_column *column);
void mt_column_reset(struct mt_column *column);

/* Decodes n values; bytes must hold them and nothing else. */
int mt_column_decode(const char *encoding, size_t encoding_len, const uint8_t *bytes, size_t len,
		     size_t n, uint64_t *ret);

static inline void mt_column_varint(struct mt_column *column, uint64_t value)
{
	uint8_t *at = column->bytes + column->len;

	while (value >= 0x80) {
		*at++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	column->len = (size_t)(at - column->bytes);
}

static inline void mt_column_delta(struct mt_column *column, uint64_t value)
{
	uint64_t delta = value - column->last;

	column->last = value;
	mt_column_varint(column, delta << 1 ^ (0 - (delta >> 63)));
}

static inline void mt_column_runs(struct mt_column *column, uint64_t value)
{
	if (column->run && column->last == value) {
		column->run++;
		return;
	}
	mt_column_end(column);
	column->last = value;
	column->run = 1;
}
