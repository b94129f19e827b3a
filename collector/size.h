/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * size.h - sizes as people write them: 8192, 8k, 8K, 8KiB, 1M
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes, with K, M or G for powers of 1024; -EINVAL for anything else, -ERANGE above max. */
static inline int mt_size_parse(const char *text, uint64_t max, uint64_t *ret)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	uint64_t scale = 1;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	if (*end) {
		unit = strchr(units, *end == 'k' ? 'K' : *end);
		if (!unit)
			return -EINVAL;
		scale <<= 10 * (unit - units + 1);
		end++;
		if (strcmp(end, "") != 0 && strcmp(end, "iB") != 0 && strcmp(end, "B") != 0)
			return -EINVAL;
	}
	if (n > max / scale)
		return -ERANGE;
	*ret = n * scale;
	return 0;
}
