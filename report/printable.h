/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * printable.h - strings of any bytes, for a terminal
 *
 * File, thread and command names are bytes that the tracked program chose.  Valid UTF-8 is
 * printed as it is, except control characters; these and all other bytes as \xNN, so that
 * a line stays a line and a name does nothing to the terminal.
 */
#include <stddef.h>
#include <stdio.h>

void mt_printable_write(FILE *out, const char *string);

/* Bytes of the valid UTF-8 sequence that the string begins with: 1 to 4; 0: it is none. */
size_t mt_printable_utf8(const char *string);

/* Whether a valid sequence is a control character: C0, DEL or C1. */
int mt_printable_is_control(const char *string);
