/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * cleanup.h - locals that own something give it back when they go out of scope
 *
 * Declare with mt_cleanup(...) and initialise in the same statement.  Ownership leaves by
 * mt_take_ptr() or mt_take_fd() only, so one function alone tells whether it leaks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define mt_cleanup(fn) __attribute__((cleanup(fn)))

static inline void mt_freep(void *p)
{
	free(*(void **)p);
}

static inline void mt_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void mt_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define mt_take_ptr(p)                \
	({                            \
		__auto_type p_ = (p); \
		(p) = NULL;           \
		p_;                   \
	})

static inline int mt_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
