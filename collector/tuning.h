/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * tuning.h - how large the rings are and how often they are drained: as people write it
 *
 * Contract
 *   Input:     text of the command line.
 *   Errors:    -EINVAL: not of this form; -ERANGE: out of the bounds.
 */

#include "collector/size.h"
#include "wire/control.h"

/* The BPF ring "stacks": in the kernel's memory from the start. */
#define MT_STACK_RING_MIN_BYTES (64 * 1024)
#define MT_STACK_RING_MAX_BYTES (1024 * 1024 * 1024)
/* It holds at least so many windows of the largest size: a ring that is full after two would
 * pause its threads at each. */
#define MT_STACK_RING_WINDOWS 4

/* A thread's ring: memory as far as it was ever filled. */
#define MT_EVENT_RING_MIN_BYTES MT_PAGE_BYTES
#define MT_EVENT_RING_MAX_BYTES (64 * 1024 * 1024)

#define MT_DRAIN_INTERVAL_MS 1
#define MT_DRAIN_INTERVAL_MAX_MS 60000

/* A ring's size: a power of two. */
static inline int mt_tuning_ring(const char *text, uint64_t min_bytes, uint64_t max_bytes,
				 uint32_t *ret_bytes)
{
	uint64_t bytes;
	int r = mt_size_parse(text, max_bytes, &bytes);

	if (r < 0)
		return r;
	if (bytes & (bytes - 1))
		return -EINVAL;
	if (bytes < min_bytes)
		return -ERANGE;
	*ret_bytes = (uint32_t)bytes;
	return 0;
}

static inline int mt_tuning_stack_ring(const char *text, uint64_t window_bytes, uint32_t *ret_bytes)
{
	uint64_t min = MT_STACK_RING_WINDOWS * window_bytes;

	if (min < MT_STACK_RING_MIN_BYTES)
		min = MT_STACK_RING_MIN_BYTES;
	return mt_tuning_ring(text, min, MT_STACK_RING_MAX_BYTES, ret_bytes);
}

static inline int mt_tuning_event_ring(const char *text, uint32_t *ret_bytes)
{
	return mt_tuning_ring(text, MT_EVENT_RING_MIN_BYTES, MT_EVENT_RING_MAX_BYTES, ret_bytes);
}

/* Milliseconds: digits, no unit. */
static inline int mt_tuning_interval(const char *text, uint32_t *ret_ms)
{
	uint64_t ms = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (ms <= MT_DRAIN_INTERVAL_MAX_MS)
			ms = ms * 10 + (uint64_t)(*text - '0');
	}
	if (ms < 1 || ms > MT_DRAIN_INTERVAL_MAX_MS)
		return -ERANGE;
	*ret_ms = (uint32_t)ms;
	return 0;
}
