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

#include "wire/session.h"

/* What MEMTRACK_RUN said when the image started; the program may change it. */
struct mt_address {
	uint64_t cookie;
	uint64_t name;	/* of the abstract name */
	char path[108]; /* as in struct sockaddr_un; empty: the abstract name only */
};

/* The number at text, and the colon behind it; what follows, or NULL: there is none. */
static inline const char *mt_address_number(const char *text, uint64_t *ret)
{
	int i, digit;

	*ret = 0;
	for (i = 0; i < MT_RUN_DIGITS; i++, text++) {
		if (*text >= '0' && *text <= '9')
			digit = *text - '0';
		else if (*text >= 'a' && *text <= 'f')
			digit = *text - 'a' + 10;
		else
			return NULL;
		*ret = *ret << 4 | digit;
	}
	return *text == ':' ? text + 1 : NULL;
}

static inline bool mt_address_parse(struct mt_address *ret, const char *text)
{
	uint64_t cookie, name;
	size_t i;

	text = mt_address_number(text, &cookie);
	text = text ? mt_address_number(text, &name) : NULL;
	if (!text)
		return false;
	ret->cookie = cookie;
	ret->name = name;
	for (i = 0; text[i] && i < sizeof(ret->path) - 1; i++)
		ret->path[i] = text[i];
	/* One that no socket address can hold: the abstract name has to do. */
	ret->path[text[i] ? 0 : i] = '\0';
	return true;
}
