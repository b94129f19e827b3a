/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * say.c - see say.h for the contract
 */
#include "collector/say.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

void mt_say(const char *format, ...)
{
	char line[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fputs("memtrack-run: ", stderr);
	for (const char *c = line; *c; c++) {
		if (iscntrl((unsigned char)*c))
			fprintf(stderr, "\\x%02x", (unsigned char)*c);
		else
			fputc(*c, stderr);
	}
	fputc('\n', stderr);
}
