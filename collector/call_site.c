/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call_site.c - see call_site.h for the contract
 *
 * Invariants
 *   - A form is taken only if its length, by its own bytes, is the distance to the end.
 */
#include "collector/call_site.h"

#include <string.h>

#define CALL_REL32 0xe8
#define CALL_REL32_BYTES 5
#define GROUP_5 0xff
#define GROUP_5_CALL 2

/* Of an instruction with one byte of opcode, as ModRM and SIB tell; room: how many bytes there
 * are from the opcode on. */
static size_t indirect_bytes(const uint8_t *opcode, size_t room)
{
	unsigned int mod = opcode[1] >> 6, rm = opcode[1] & 7, base = rm;
	size_t len = 2;

	if (mod == 3)
		return len;
	if (rm == 4) { /* there is an SIB */
		if (room <= len)
			return 0;
		base = opcode[len++] & 7;
	}
	if (mod == 1)
		len += 1;
	else if (mod == 2 || base == 5) /* without a base register, or relative to rip */
		len += 4;
	return len;
}

bool mt_call_site_indirect(const uint8_t *bytes, size_t len)
{
	for (size_t n = 2; n <= len && n <= MT_CALL_SITE_BYTES; n++) {
		const uint8_t *opcode = bytes + len - n;

		if (opcode[0] == GROUP_5 && (opcode[1] >> 3 & 7) == GROUP_5_CALL &&
		    indirect_bytes(opcode, n) == n)
			return true;
	}
	return false;
}

bool mt_call_site_direct(const uint8_t *bytes, size_t len, int32_t *ret)
{
	const uint8_t *opcode = bytes + len - CALL_REL32_BYTES;

	if (len < CALL_REL32_BYTES || opcode[0] != CALL_REL32)
		return false;
	memcpy(ret, opcode + 1, sizeof(*ret));
	return true;
}
