/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * weight.h - how much a file may say for its length
 *
 * What a file says a reader has to keep: blocks that live, nodes, threads.  zstd can say the
 * like a million times in some hundred bytes, so that a file that fits into a mail could take
 * all of a machine's memory.  So what is said weighs, and a file has a byte for each
 * MT_WEIGHT_PER_BYTE of it.
 *
 * A recording has ten times as many bytes if its clock counts nanoseconds, as times do not
 * repeat: a row of the most regular program takes a third of a byte.  By a clock that stands
 * still for a microsecond or for milliseconds it can be a hundredth, or less; then the writer
 * fills the file up.
 *
 * Contract
 *   Input:     strings may be NULL.
 *   Bounds:    for a row memtrack-report needs 80 bytes of memory, a bit more if it is part of
 *              what makes a chain: a byte of a file can cost 3 KiB.
 */
#include <stddef.h>
#include <string.h>

#include "artifact/format.h"

#define MT_WEIGHT_PER_BYTE 128
/* And this besides: for files that were compressed once more, and have lost the filling. */
#define MT_WEIGHT_ALWAYS (4u << 20)

/* A row of a block.  The block itself weighs nothing, and the header and the footer, which are
 * there once. */
#define MT_WEIGHT_ROW 4
/* Others, besides their strings, symbols and mappings; a stack's words are not kept.  What a
 * struct of format.h has today: the format's numbers, which do not grow with it. */
#define MT_WEIGHT_MODULE 32
#define MT_WEIGHT_SYMBOLS 24
#define MT_WEIGHT_SYMBOL 32
#define MT_WEIGHT_PROCESS 40
#define MT_WEIGHT_PROCESS_END 24
#define MT_WEIGHT_THREAD 32
#define MT_WEIGHT_NOT_TRACKED 24
#define MT_WEIGHT_MAPPINGS 16
#define MT_WEIGHT_MAPPING 32
#define MT_WEIGHT_KEPT_STACK 56

static inline size_t mt_weight_string(const char *string)
{
	return string ? strlen(string) : 0;
}

static inline size_t mt_weight_module(const struct mt_module *module)
{
	return MT_WEIGHT_MODULE + mt_weight_string(module->path) + module->build_id_bytes;
}

static inline size_t mt_weight_symbols(const struct mt_module_symbols *symbols)
{
	size_t weight = MT_WEIGHT_SYMBOLS + symbols->len * (size_t)MT_WEIGHT_SYMBOL;

	for (uint32_t i = 0; i < symbols->len; i++)
		weight += mt_weight_string(symbols->symbols[i].name);
	return weight;
}

static inline size_t mt_weight_process(const struct mt_process *process)
{
	return MT_WEIGHT_PROCESS + mt_weight_string(process->exe) + mt_weight_string(process->name);
}

static inline size_t mt_weight_thread(const struct mt_thread_info *thread)
{
	return MT_WEIGHT_THREAD + mt_weight_string(thread->name);
}

static inline size_t mt_weight_not_tracked(const struct mt_not_tracked *what)
{
	return MT_WEIGHT_NOT_TRACKED + mt_weight_string(what->what) +
	       mt_weight_string(what->reason);
}

static inline size_t mt_weight_mappings(const struct mt_mappings *mappings)
{
	return MT_WEIGHT_MAPPINGS + mappings->len * MT_WEIGHT_MAPPING;
}
