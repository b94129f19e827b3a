/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * clock.h - CLOCK_MONOTONIC in ns, the clock of the events and of bpf_ktime_get_ns()
 */
#include <stdint.h>
#include <time.h>

static inline uint64_t mt_clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t mt_clock_ns(void)
{
	return mt_clock_read_ns(CLOCK_MONOTONIC);
}

/* What the clock is behind CLOCK_REALTIME, which is the same in all time namespaces. */
static inline uint64_t mt_clock_behind_wall_ns(void)
{
	uint64_t before_ns, wall_ns, after_ns = mt_clock_ns();
	int tries = 0;

	do { /* Two looks at once, unless something came between. */
		before_ns = after_ns;
		wall_ns = mt_clock_read_ns(CLOCK_REALTIME);
		after_ns = mt_clock_ns();
	} while (after_ns - before_ns > 20 * 1000 && ++tries < 10);
	return wall_ns - before_ns;
}

/* What the thread has had of a processor. */
static inline uint64_t mt_clock_cpu_ns(void)
{
	return mt_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* A time of that clock, as system calls want it. */
static inline struct timespec mt_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}
