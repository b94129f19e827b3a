/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * status_line.c - see status_line.h for the contract
 *
 * Invariants
 *   - SIGTTOU is blocked while we write: who loses the foreground between the look and the
 *     write, on a terminal with tostop, writes once too often and is not stopped.
 *   - The last column stays free: a terminal that has written into it may wrap.
 *   - What was shown when the foreground was lost is not ours to erase any more.
 */
#include "collector/status_line.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "collector/clock.h"

#define ERASE "\r\033[K"
#define WIDTH_MAX 512
#define WIDTH_UNKNOWN 80

/* Whether the terminal is ours to write to now. */
static bool is_ours(const struct mt_status_line *line)
{
	struct termios settings;

	return tcgetpgrp(line->fd) == getpgrp() && tcgetattr(line->fd, &settings) == 0 &&
	       settings.c_lflag & ICANON;
}

static int width(const struct mt_status_line *line)
{
	struct winsize size;

	if (ioctl(line->fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return WIDTH_UNKNOWN;
	return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

/* Returns whether it was written, in whole or in part. */
static bool put(const struct mt_status_line *line, const char *text, int wait_ms)
{
	struct pollfd room = { .fd = line->fd, .events = POLLOUT };
	sigset_t ttou, before;
	ssize_t n;

	if (poll(&room, 1, wait_ms) != 1 || !(room.revents & POLLOUT))
		return false;
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &before);
	n = write(line->fd, text, strlen(text));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return n > 0;
}

void mt_status_line_begin(struct mt_status_line *line, int fd, uint64_t first_ns)
{
	const char *terminal = secure_getenv("TERM");

	*line = (struct mt_status_line){
		.fd = fd,
		.first_ns = first_ns,
		.on = terminal && terminal[0] && strcmp(terminal, "dumb") != 0 && isatty(fd),
	};
}

void mt_status_line_show(struct mt_status_line *line, const char *text)
{
	char all[sizeof(ERASE) + WIDTH_MAX];

	if (!line->on || mt_clock_ns() < line->first_ns)
		return;
	if (!is_ours(line)) {
		line->shown = false;
		return;
	}
	snprintf(all, sizeof(all), ERASE "%.*s", width(line) - 1, text);
	line->shown |= put(line, all, 0);
}

void mt_status_line_erase(struct mt_status_line *line)
{
	if (line->shown && is_ours(line))
		put(line, ERASE, MT_STATUS_LINE_WAIT_MS);
	line->shown = false;
}

void mt_status_line_end(struct mt_status_line *line)
{
	mt_status_line_erase(line);
	line->on = false;
}
