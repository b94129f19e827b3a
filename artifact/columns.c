/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * columns.c - see columns.h for the contract
 *
 * Invariants
 *   - A column's bytes have room for MT_BLOCK_ROWS values of the longest kind, a run of
 *     one: hence no check when one is appended.
 */
#include "artifact/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mt_column_init(struct mt_column *column, const char *name, const char *encoding)
{
	*column = (struct mt_column){ .name = name, .encoding = encoding };
	column->bytes = malloc(MT_COLUMN_BYTES);
	return column->bytes ? 0 : -ENOMEM;
}

void mt_column_done(struct mt_column *column)
{
	free(column->bytes);
	column->bytes = NULL;
}

void mt_column_end(struct mt_column *column)
{
	if (!column->run)
		return;
	mt_column_varint(column, column->last);
	mt_column_varint(column, column->run - 1);
	column->run = 0;
}

void mt_column_reset(struct mt_column *column)
{
	column->len = 0;
	column->last = 0;
	column->run = 0;
}

/* Returns where the varint at at ends; NULL if it does not, before end, or is no 64-bit value. */
static const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && at < end; shift += 7) {
		uint64_t bits = *at & 0x7f;

		if (shift == 63 && bits > 1)
			return NULL;
		value |= bits << shift;
		if (!(*at++ & 0x80)) {
			*ret = value;
			return at;
		}
	}
	return NULL;
}

static const uint8_t *decode_varint(const uint8_t *at, const uint8_t *end, size_t n, uint64_t *ret)
{
	for (size_t i = 0; at && i < n; i++)
		at = read_varint(at, end, &ret[i]);
	return at;
}

static const uint8_t *decode_delta(const uint8_t *at, const uint8_t *end, size_t n, uint64_t *ret)
{
	uint64_t last = 0;

	at = decode_varint(at, end, n, ret);
	for (size_t i = 0; at && i < n; i++) {
		last += ret[i] >> 1 ^ (0 - (ret[i] & 1));
		ret[i] = last;
	}
	return at;
}

static const uint8_t *decode_runs(const uint8_t *at, const uint8_t *end, size_t n, uint64_t *ret)
{
	size_t done = 0;

	while (done < n) {
		uint64_t value, more;

		at = read_varint(at, end, &value);
		if (!at)
			return NULL;
		at = read_varint(at, end, &more);
		if (!at || more >= n - done)
			return NULL;
		for (size_t end_of_run = done + more + 1; done < end_of_run; done++)
			ret[done] = value;
	}
	return at;
}

static const struct {
	const char *name;
	const uint8_t *(*decode)(const uint8_t *at, const uint8_t *end, size_t n, uint64_t *ret);
} encodings[] = {
	{ "varint", decode_varint },
	{ "delta", decode_delta },
	{ "runs", decode_runs },
};

int mt_column_decode(const char *encoding, size_t encoding_len, const uint8_t *bytes, size_t len,
		     size_t n, uint64_t *ret)
{
	for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		const char *name = encodings[i].name;

		if (strlen(name) != encoding_len || memcmp(name, encoding, encoding_len) != 0)
			continue;
		return encodings[i].decode(bytes, bytes + len, n, ret) == bytes + len ? 0
										      : -EBADMSG;
	}
	return -ENOTSUP;
}
