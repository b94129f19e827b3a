/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demangle.c - see demangle.h
 */
#include "report/demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

char *mt_demangle(const char *name)
{
	char *plain = NULL;

	/* All that is mangled begins with _Z or _R; _Z with up to two more underscores on
	 * other systems. */
	if (name[0] == '_' && strnlen(name, MT_DEMANGLE_MAX + 1) <= MT_DEMANGLE_MAX)
		plain = cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
	return plain ? plain : strdup(name);
}
