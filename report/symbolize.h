/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * symbolize.h - a node of the call tree to function, file and line, with what was inlined
 *
 * Modules are opened when a node in them is asked for first, answers are kept.
 *
 * Contract
 *   Input:     a run (report/run.h) that was read.  Its modules are looked for at their path,
 *              and only believed if they have the build-id that was recorded; else there are
 *              the functions that were recorded, if any were.
 *   Ownership: the run is borrowed until mt_symbolizer_free(); what is returned is the
 *              symbolizer's.
 *   Errors:    -ENOMEM.  Whatever can not be named is not an error: its frame has no
 *              function, and mt_symbolizer_problem() says why.
 *   Threads:   one at a time.
 *   Bounds:    the debug information of the modules that were asked for.
 */
#include "report/run.h"

struct mt_symbolizer;

struct mt_frame {
	char *function;	   /* NULL: not known */
	char *file;	   /* NULL: not known */
	unsigned int line; /* 0: not known */
	int inlined;	   /* into the next one */
	int linkage;	   /* function is from a linker's name */
};

struct mt_frames {
	struct mt_frame *frames; /* the innermost first; the last one is not inlined */
	size_t len;		 /* at least 1 */
};

int mt_symbolizer_new(const struct mt_run *run, struct mt_symbolizer **ret);
void mt_symbolizer_free(struct mt_symbolizer *symbolizer);

static inline void mt_symbolizer_freep(struct mt_symbolizer **symbolizer)
{
	mt_symbolizer_free(*symbolizer);
}

/* The node is not a root. */
int mt_symbolizer_node(struct mt_symbolizer *symbolizer, uint32_t node,
		       const struct mt_frames **ret);

/* Whether the module was asked for. */
int mt_symbolizer_used(const struct mt_symbolizer *symbolizer, uint32_t module);

/* Why names or lines are missing in a module that was asked for, in words; or NULL. */
const char *mt_symbolizer_problem(const struct mt_symbolizer *symbolizer, uint32_t module);
