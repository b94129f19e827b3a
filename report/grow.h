/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * grow.h - an array that doubles when it is full
 *
 * Contract
 *   Ownership: the array is the caller's, to be freed with free().
 *   Errors:    -ENOMEM: array and room are as they were.
 *   Bounds:    at most twice what was asked for.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for need elements in *array, a pointer to an array; what is new is zero. */
static inline int mt_grow(void *array, size_t *room, size_t need, size_t element_bytes)
{
	size_t more = *room ? *room * 2 : 16;
	void *old, *grown;

	if (need <= *room)
		return 0;
	if (more < need)
		more = need;
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, more, element_bytes);
	if (!grown)
		return -ENOMEM;
	memset((char *)grown + *room * element_bytes, 0, (more - *room) * element_bytes);
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	return 0;
}
