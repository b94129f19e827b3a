/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * say.c - see say.h for the contract
 */
#include "collector/say.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 8192
/* A control character is shown as four. */
#define SHOWN_BYTES (4 * LINE_BYTES)
/* A pipe that takes nothing for so long is one that nobody reads. */
#define UNREAD_MS 5000

/* Whether standard error takes PIPE_BUF bytes; a terminal that was halted is waited for. */
static bool takes_more(void)
{
	static bool unread;
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (!isatty(STDERR_FILENO))
		unread = poll(&out, 1, unread ? 0 : UNREAD_MS) == 0;
	return !unread;
}

static void write_out(const char *text, size_t len)
{
	while (len && takes_more()) {
		ssize_t n = write(STDERR_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		text += n < 0 ? 0 : n;
		len -= n < 0 ? 0 : (size_t)n;
	}
}

void mt_say(const char *format, ...)
{
	static const char name[] = "memtrack-run: ";
	char line[LINE_BYTES], shown[sizeof(name) + SHOWN_BYTES];
	size_t len = sizeof(name) - 1;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	memcpy(shown, name, len);
	for (const char *c = line; *c; c++) {
		if (iscntrl((unsigned char)*c))
			len += (size_t)snprintf(shown + len, sizeof(shown) - len, "\\x%02x",
						(unsigned char)*c);
		else
			shown[len++] = *c;
	}
	shown[len++] = '\n';
	write_out(shown, len);
}
