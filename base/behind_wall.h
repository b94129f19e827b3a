/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * behind_wall.h - what CLOCK_MONOTONIC is behind CLOCK_REALTIME, for both ends of a hand-shake:
 * the latter is the same in all time namespaces, and so tells how far the former differ
 *
 * Contract
 *   Input:     how a clock is read, in ns.
 *   Threads:   any; no function of the C library is called.
 */
#include <stdint.h>
#include <time.h>

/* Between looks at two clocks that are taken for one; how often they are looked at. */
#define MT_LOOKS_NS 20000
#define MT_LOOKS_MAX 10

static inline uint64_t mt_behind_wall_ns(uint64_t (*read_ns)(clockid_t clock))
{
	uint64_t before_ns, wall_ns, after_ns = read_ns(CLOCK_MONOTONIC);
	int tries = 0;

	do { /* Again, if something came between. */
		before_ns = after_ns;
		wall_ns = read_ns(CLOCK_REALTIME);
		after_ns = read_ns(CLOCK_MONOTONIC);
	} while (after_ns - before_ns > MT_LOOKS_NS && ++tries < MT_LOOKS_MAX);
	return wall_ns - before_ns;
}
