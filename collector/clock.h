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
