/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sanitizer.c - see sanitizer.h
 *
 * Invariants
 *   - A runtime asks for its options first of all that it does, in a preinit_array, thus
 *     before any constructor of a library.  A program may answer one of the questions itself,
 *     and then that is no call of the shim's: there are two.
 *   - The runtime goes by the loader's names, and passes over an object that has none, as
 *     some vDSOs have: the shim's is taken away for good.
 */
#include "preload/sanitizer.h"

#include <stdbool.h>

#include "preload/glibc.h"
#include "preload/image.h"

static const char *own_name;
static char no_name[1];

const char *mt_sanitizer_own_name(void)
{
	return own_name;
}

static void step_aside(void)
{
	struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;

	while (map && map->l_addr != (uint64_t)__ehdr_start)
		map = map->l_next;
	if (!map || own_name)
		return;
	own_name = map->l_name;
	map->l_name = no_name;
}

/* What the program, or the runtime, has to say. */
static const char *ask_next(const char *name)
{
	const char *(*next)(void);

	step_aside();
	next = (const char *(*)(void))mt_image_next(name, 0);
	return next ? next() : "";
}

#define ANSWER(name)                                                   \
	__attribute__((visibility("default"))) const char *name(void); \
	__attribute__((visibility("default"))) const char *name(void)  \
	{                                                              \
		return ask_next(#name);                                \
	}

ANSWER(__asan_default_options)
ANSWER(__lsan_default_options)
