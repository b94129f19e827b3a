/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * policy.h - what is done where rings fill up, as people write it
 *
 * Contract
 *   Input:     text of the command line.
 *   Errors:    -EINVAL: not of this form, or out of the bounds.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"

/* How long an episode of pressure may last. */
#define MT_PRESSURE_NEVER 0 /* none is waited for */
#define MT_PRESSURE_INF UINT64_MAX
#define MT_PRESSURE_MAX_SECONDS (24 * 60 * 60)

static inline int mt_policy_pause(const char *text, uint32_t *ret)
{
	static const char *const names[] = {
		[MT_PAUSE_FUTEX] = "futex",
		[MT_PAUSE_SIGNAL] = "signal",
		[MT_PAUSE_NEVER] = "never", /* the collector's own word for a timeout of 0 */
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Seconds, with a fraction; 0; or inf. */
static inline int mt_policy_timeout(const char *text, uint64_t *ret_ns)
{
	double seconds;
	char *end;

	if (!strcmp(text, "inf")) {
		*ret_ns = MT_PRESSURE_INF;
		return 0;
	}
	/* Nothing of what else strtod() reads. */
	if (!*text || strspn(text, "0123456789.") != strlen(text))
		return -EINVAL;
	seconds = strtod(text, &end);
	if (*end || seconds > MT_PRESSURE_MAX_SECONDS)
		return -EINVAL;
	*ret_ns = (uint64_t)(seconds * 1e9);
	/* Less than can be told from 0 is not 0, which means something else. */
	if (seconds > 0 && !*ret_ns)
		*ret_ns = 1;
	return 0;
}

/* 1 to 99 percent: a ring of which all may be used before anybody is told would be full. */
static inline int mt_policy_watermark(const char *text, uint32_t *ret_percent)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long percent = strtoul(text, NULL, 10);

	if (!digits || digits > 2 || text[digits] || !percent)
		return -EINVAL;
	*ret_percent = (uint32_t)percent;
	return 0;
}
