/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demangle.c - see demangle.h
 *
 * Invariants
 *   libiberty has no limit for a result, nor a way to say that there is enough: it is left by
 *   a jump out of the function that it hands pieces to.  It keeps what it needs on the stack
 *   (but, for the moment, the letters of a Rust name that are not ASCII: these leak).
 */
#include "report/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "report/grow.h"

#define OPTIONS (DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI)

struct result {
	char *bytes;
	size_t len, room;
	int failed; /* out of memory */
	jmp_buf enough;
};

static void add(const char *piece, size_t len, void *opaque)
{
	struct result *result = opaque;

	if (len > MT_DEMANGLE_RESULT_MAX - result->len)
		longjmp(result->enough, 1);
	/* One more, for the NUL. */
	if (mt_grow(&result->bytes, &result->room, result->len + len + 1, 1)) {
		result->failed = 1;
		longjmp(result->enough, 1);
	}
	/* A piece of none is NULL. */
	if (len)
		memcpy(result->bytes + result->len, piece, len);
	result->len += len;
}

/* Whether the name is mangled, and its result not too long. */
static int demangle(const char *name, struct result *result)
{
	if (setjmp(result->enough))
		return 0;
	if (rust_demangle_callback(name, OPTIONS, add, result))
		return 1;
	result->len = 0;
	return cplus_demangle_v3_callback(name, OPTIONS, add, result);
}

char *mt_demangle(const char *name)
{
	struct result result = { 0 };

	/* All that is mangled begins with _Z or _R; _Z with up to two more underscores on
	 * other systems. */
	if (name[0] == '_' && strnlen(name, MT_DEMANGLE_MAX + 1) <= MT_DEMANGLE_MAX &&
	    demangle(name, &result) && result.len) {
		result.bytes[result.len] = '\0';
		return result.bytes;
	}
	free(result.bytes);
	return result.failed ? NULL : strdup(name);
}
