/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack.c - see unpack.h for the contract
 *
 * The types are those of the msgpack specification,
 * https://github.com/msgpack/msgpack/blob/master/spec.md.
 *
 * Invariants
 *   - pos moves only past objects that were accepted, and never past end.
 *   - Each object has a byte at least, so that a number of objects that is greater than
 *     the number of bytes left is refused before anything is done so many times.
 */
#include "artifact/unpack.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* The first byte of each object, and what comes after it. */
struct head {
	enum { NONE, INT, UINT, ARRAY, MAP, BYTES, OTHER } type;
	uint64_t value;	  /* INT, UINT; or the number of elements, pairs or bytes */
	uint8_t *payload; /* after the value */
};

static uint64_t big_endian(const uint8_t *at, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | at[i];
	return value;
}

/* clang-format off */
/* The types from 0xc0 to 0xdf: what it is, the bytes of its value, and (ext) bytes besides. */
static const struct {
	uint8_t type, value_bytes, more_bytes;
} types[32] = {
	[0x00] = { OTHER, 0, 0 },					     /* nil */
	[0x02] = { OTHER, 0, 0 }, [0x03] = { OTHER, 0, 0 },		     /* false, true */
	[0x04] = { BYTES, 1, 0 }, [0x05] = { BYTES, 2, 0 },		     /* bin */
	[0x06] = { BYTES, 4, 0 },
	[0x07] = { OTHER, 1, 1 }, [0x08] = { OTHER, 2, 1 },		     /* ext */
	[0x09] = { OTHER, 4, 1 },
	[0x0a] = { OTHER, 0, 4 }, [0x0b] = { OTHER, 0, 8 },		     /* float */
	[0x0c] = { UINT, 1, 0 },  [0x0d] = { UINT, 2, 0 },		     /* uint */
	[0x0e] = { UINT, 4, 0 },  [0x0f] = { UINT, 8, 0 },
	[0x10] = { INT, 1, 0 },	  [0x11] = { INT, 2, 0 },		     /* int */
	[0x12] = { INT, 4, 0 },	  [0x13] = { INT, 8, 0 },
	[0x14] = { OTHER, 0, 2 }, [0x15] = { OTHER, 0, 3 },		     /* fixext */
	[0x16] = { OTHER, 0, 5 }, [0x17] = { OTHER, 0, 9 },
	[0x18] = { OTHER, 0, 17 },
	[0x19] = { BYTES, 1, 0 }, [0x1a] = { BYTES, 2, 0 },		     /* str */
	[0x1b] = { BYTES, 4, 0 },
	[0x1c] = { ARRAY, 2, 0 }, [0x1d] = { ARRAY, 4, 0 },
	[0x1e] = { MAP, 2, 0 },	  [0x1f] = { MAP, 4, 0 },
};
/* clang-format on */

/* Reads a head; on success all bytes of a BYTES or OTHER are there. */
static int read_head(const struct mt_unpack *unpack, struct head *ret)
{
	size_t left = (size_t)(unpack->end - unpack->pos), value_bytes;
	uint8_t first;
	uint64_t value;

	if (!left)
		return -EBADMSG;
	first = unpack->pos[0];
	*ret = (struct head){ .type = UINT, .value = first, .payload = unpack->pos + 1 };
	left--;
	if (first < 0x80)
		return 0;
	if (first >= 0xe0) {
		*ret = (struct head){ INT, (uint64_t)(int8_t)first, ret->payload };
		return 0;
	}
	if (first < 0xc0) {
		ret->type = first < 0x90 ? MAP : first < 0xa0 ? ARRAY : BYTES;
		ret->value = first & (ret->type == BYTES ? 0x1f : 0x0f);
		return ret->type == BYTES && ret->value > left ? -EBADMSG : 0;
	}

	ret->type = types[first & 0x1f].type;
	value_bytes = types[first & 0x1f].value_bytes;
	if (ret->type == NONE || value_bytes > left)
		return -EBADMSG;
	left -= value_bytes;
	value = big_endian(ret->payload, value_bytes);
	ret->payload += value_bytes;
	if (ret->type == INT)
		value = (uint64_t)((int64_t)(value << (64 - 8 * value_bytes)) >>
				   (64 - 8 * value_bytes));
	if (ret->type == OTHER)
		value += types[first & 0x1f].more_bytes;
	if ((ret->type == BYTES || ret->type == OTHER) && value > left)
		return -EBADMSG;
	ret->value = value;
	return 0;
}

int mt_unpack_array(struct mt_unpack *unpack, uint32_t *ret)
{
	struct head head;

	if (read_head(unpack, &head) < 0 || head.type != ARRAY ||
	    head.value > (uint64_t)(unpack->end - head.payload))
		return -EBADMSG;
	unpack->pos = head.payload;
	*ret = (uint32_t)head.value;
	return 0;
}

int mt_unpack_uint(struct mt_unpack *unpack, uint64_t *ret)
{
	struct head head;

	if (read_head(unpack, &head) < 0 ||
	    !(head.type == UINT || (head.type == INT && (int64_t)head.value >= 0)))
		return -EBADMSG;
	unpack->pos = head.payload;
	*ret = head.value;
	return 0;
}

int mt_unpack_u32(struct mt_unpack *unpack, uint32_t *ret)
{
	struct mt_unpack at = *unpack;
	uint64_t value;

	if (mt_unpack_uint(&at, &value) < 0 || value > UINT32_MAX)
		return -EBADMSG;
	*unpack = at;
	*ret = (uint32_t)value;
	return 0;
}

int mt_unpack_i32(struct mt_unpack *unpack, int32_t *ret)
{
	struct head head;
	int64_t value;

	if (read_head(unpack, &head) < 0 || (head.type != INT && head.type != UINT))
		return -EBADMSG;
	value = (int64_t)head.value;
	if (value < INT32_MIN || value > INT32_MAX || (head.type == UINT && value < 0))
		return -EBADMSG;
	unpack->pos = head.payload;
	*ret = (int32_t)value;
	return 0;
}

int mt_unpack_bytes(struct mt_unpack *unpack, uint8_t **ret, size_t *ret_len)
{
	struct head head;

	if (read_head(unpack, &head) < 0 || head.type != BYTES)
		return -EBADMSG;
	unpack->pos = head.payload + head.value;
	*ret = head.payload;
	*ret_len = (size_t)head.value;
	return 0;
}

int mt_unpack_string(struct mt_unpack *unpack, char **ret)
{
	struct mt_unpack at = *unpack;
	uint8_t *bytes, *string;
	size_t len;

	if (mt_unpack_bytes(&at, &bytes, &len) < 0 || memchr(bytes, 0, len))
		return -EBADMSG;
	/* The byte before it is the last of the object's own head. */
	string = bytes - 1;
	memmove(string, bytes, len);
	string[len] = 0;
	*unpack = at;
	*ret = (char *)string;
	return 0;
}

int mt_unpack_skip(struct mt_unpack *unpack)
{
	struct mt_unpack at = *unpack;
	uint64_t objects = 1; /* still to be passed over, at whatever depth */

	while (objects) {
		struct head head;

		if (objects > (uint64_t)(at.end - at.pos) || read_head(&at, &head) < 0)
			return -EBADMSG;
		at.pos = head.payload;
		objects--;
		if (head.type == ARRAY)
			objects += head.value;
		else if (head.type == MAP)
			objects += 2 * head.value;
		else if (head.type == BYTES || head.type == OTHER)
			at.pos += head.value;
	}
	*unpack = at;
	return 0;
}
