/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * unpack.h - msgpack objects out of bytes that nobody vouches for
 *
 * A cursor, not a tree: msgpack-c's unpacker reserves memory for the number of elements
 * that an array declares, and this needs none at all, however long or deep the input is.
 *
 * Contract
 *   Input:     any bytes.
 *   Ownership: what is returned points into the input, which must stay writable:
 *              mt_unpack_string() moves a string over its own length to make room for a
 *              NUL.  So each object is read once.
 *   Errors:    -EBADMSG: not the object asked for, or not all there.  The cursor is then
 *              where it was, and nothing is written.
 *   Bounds:    time in proportion to the bytes passed over.
 */
#include <stddef.h>
#include <stdint.h>

struct mt_unpack {
	uint8_t *pos;
	uint8_t *end;
};

int mt_unpack_array(struct mt_unpack *unpack, uint32_t *ret);

/* Any integer that fits, in whatever width it was packed. */
int mt_unpack_uint(struct mt_unpack *unpack, uint64_t *ret);
int mt_unpack_u32(struct mt_unpack *unpack, uint32_t *ret);
int mt_unpack_i32(struct mt_unpack *unpack, int32_t *ret);

/* Of type bin or str. */
int mt_unpack_bytes(struct mt_unpack *unpack, uint8_t **ret, size_t *ret_len);
/* The same, NUL-terminated; one that has a NUL inside is refused. */
int mt_unpack_string(struct mt_unpack *unpack, char **ret);

/* Passes over an object of any kind, with all that is in it. */
int mt_unpack_skip(struct mt_unpack *unpack);
