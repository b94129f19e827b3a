/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * address.h - where the run's collector is, as the environment has it (wire/session.h)
 *
 * Contract
 *   Input:     any string: the environment is the program's, who may have made it up.
 *   Errors:    false: not an address; *ret is as it was.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What MEMTRACK_RUN said when the image started; the program may change it. */
struct mt_address {
	uint64_t cookie;
	char path[108]; /* as in struct sockaddr_un; empty: the abstract name only */
};

static inline bool mt_address_parse(struct mt_address *ret, const char *text)
{
	uint64_t cookie = 0;
	size_t i;

	for (i = 0; i < 16; i++, text++) {
		int digit;

		if (*text >= '0' && *text <= '9')
			digit = *text - '0';
		else if (*text >= 'a' && *text <= 'f')
			digit = *text - 'a' + 10;
		else
			return false;
		cookie = cookie << 4 | digit;
	}
	if (*text != ':')
		return false;
	text++;
	ret->cookie = cookie;
	for (i = 0; text[i] && i < sizeof(ret->path) - 1; i++)
		ret->path[i] = text[i];
	/* One that no socket address can hold: the abstract name has to do. */
	ret->path[text[i] ? 0 : i] = '\0';
	return true;
}
