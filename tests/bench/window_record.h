/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * window_record.h - a file of windows, as record_windows.c writes it and replay_stacks.c reads it
 *
 * A file is of a process: records one behind the other, each a window (wire/reference.h) of
 * a budget of WINDOW_BUDGET_BYTES, as it was when its thread called an allocation function.
 * Files would have gigabytes if a window's words were in it as they are: writer and reader
 * both keep an image of each thread's stack, in which the word at address A is
 * image[A / 8 % WINDOW_WORDS], all zero at first and when a record is WINDOW_FRESH, and a
 * record has the words that are not those of the image.  That is no codec of memtrack's:
 * it is what memtrack's are measured with.
 *
 * A record is followed by runs: a word that is the place of the first one in the window and
 * the number of words << 32, then the words.
 */
#include <stdint.h>

#define WINDOW_BUDGET_BYTES (32 * 1024)
#define WINDOW_WORDS (WINDOW_BUDGET_BYTES / 8)
#define WINDOW_FRESH 1

struct window_record {
	uint32_t tid;
	uint32_t flags; /* WINDOW_FRESH */
	uint64_t start, end;
	uint64_t run_words; /* behind this, runs with their heads */
};
