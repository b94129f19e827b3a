/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * say.h - a line of memtrack-run's on standard error
 *
 * Contract
 *   Input:   what names are in it may be anything: what would control a terminal is shown as
 *            \xNN.
 *   Bounds:  8 KiB; what is longer is cut.  Where standard error is a pipe that is full, and is
 *            not read for five seconds, the line is left out.
 */
__attribute__((format(printf, 1, 2))) void mt_say(const char *format, ...);
