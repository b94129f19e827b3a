/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * status_line.h - one line on a terminal that is drawn over itself, and leaves nothing behind
 *
 * Contract
 *   Input:     text is of printable ASCII; it is cut to the terminal's width.
 *   Ownership: the descriptor is borrowed; the structure, all zero, is a line that is off.
 *   Errors:    none: what can not be shown is not.  The line is off for good where fd is no
 *              terminal, or one that can not erase (TERM unset or dumb).
 *   Threads:   one.
 *   Bounds:    a terminal that takes nothing is not waited for to show, and for
 *              MT_STATUS_LINE_WAIT_MS to erase.
 *
 * Others use the terminal too.  Nothing is written, nor erased, while our process group is not
 * the one in the foreground, which a shell's job control or a command with groups of its own
 * decides; nor while the terminal hands on single characters: a program that draws its screen
 * itself is there.  Erase the line before anything else is written by the same process, and
 * before it stops.
 */
#include <stdbool.h>
#include <stdint.h>

#define MT_STATUS_LINE_WAIT_MS 100

struct mt_status_line {
	int fd;
	uint64_t first_ns; /* CLOCK_MONOTONIC: nothing is shown before */
	bool on;
	bool shown;
};

void mt_status_line_begin(struct mt_status_line *line, int fd, uint64_t first_ns);
void mt_status_line_show(struct mt_status_line *line, const char *text);
void mt_status_line_erase(struct mt_status_line *line);
/* Erases, and shows nothing any more. */
void mt_status_line_end(struct mt_status_line *line);

static inline bool mt_status_line_is_on(const struct mt_status_line *line)
{
	return line->on;
}
