/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * real.h - the next definitions of what the shim stands in front of, and the C library's
 * own functions that the shim uses
 *
 * Contract
 *   Errors:    none: what has no next definition fails with ENOMEM, a free of that kind is
 *              a free
 *   Threads:   mt_real_resolve() by one thread, once; after that any
 *   Bounds:    no allocation of its own; the loader's list lock
 */
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "preload/entry.h"
#include "preload/sandbox.h"

#pragma GCC visibility push(hidden)

/* The C library's own, whoever else stands in front of them. */
struct mt_libc {
	int (*clock_gettime)(clockid_t clock, struct timespec *ret);
	int (*dl_iterate_phdr)(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);
	unsigned long (*getauxval)(unsigned long type);
	int (*mutexattr_init)(pthread_mutexattr_t *attr);
	int (*mutexattr_setrobust)(pthread_mutexattr_t *attr, int robust);
	int (*mutexattr_setpshared)(pthread_mutexattr_t *attr, int shared);
	int (*mutex_init)(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
	int (*mutex_trylock)(pthread_mutex_t *mutex);
	int (*mutex_unlock)(pthread_mutex_t *mutex);
	int (*mutex_consistent)(pthread_mutex_t *mutex);
};

extern struct mt_libc mt_libc;

/* By number; NULL where there is none. */
extern const char *const mt_real_names[MT_FN_MAX];

/* Were the shim's symbols bound?  Before that nothing but hidden data may be touched. */
bool mt_real_relocated(void);

/* Fills mt_real[], but for the operators, and mt_libc. */
void mt_real_resolve(void);

/* How many objects the image started with. */
unsigned mt_real_started(void);

/*
 * The malloc that the executable, or an object before the shim, has in the shim's place, so
 * that the stubs are not called; NULL if there is none.
 */
const void *mt_real_displaced(void);

/* Is the next malloc a sanitizer's?  Its reports begin where that was called. */
bool mt_real_sanitizes(void);

/* The next dlclose(). */
int mt_real_dlclose(void *handle);

/* The next prctl(); a: four arguments. */
int mt_real_prctl(int option, const unsigned long *a);

/* An object was unloaded: what was looked up for a caller is looked up anew. */
void mt_real_forget(void);

static inline uint64_t mt_read_clock_ns(clockid_t clock)
{
	struct timespec now;

	mt_libc.clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* From CLOCK_MONOTONIC of this time namespace to that of the collector. */
extern int64_t mt_clock_offset_ns;

/* By the collector's clock. */
static inline uint64_t mt_now_ns(void)
{
	if (__builtin_expect(mt_sandbox_clock, 0))
		return mt_sandbox_now_ns() + (uint64_t)mt_clock_offset_ns;
	return mt_read_clock_ns(CLOCK_MONOTONIC) + (uint64_t)mt_clock_offset_ns;
}

#pragma GCC visibility pop
