/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inside.c - see inside.h for the contract
 */
#include "collector/inside.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "collector/proc_state.h"

static uint32_t child_of_thread(uint32_t tgid, uint32_t tid, uint32_t inner)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_children(tgid, tid);
	uint32_t child;

	while (file && fscanf(file, "%u", &child) == 1)
		if (mt_proc_inner_tgid(child) == inner)
			return child;
	return 0;
}

uint32_t mt_inside_child(uint32_t parent, uint32_t inner)
{
	mt_cleanup(mt_proc_closep) DIR *threads = mt_proc_threads(parent);
	uint32_t tid, child = 0;

	while (!child && (tid = mt_proc_next(threads)))
		child = child_of_thread(parent, tid, inner);
	return child;
}

uint32_t mt_inside_thread(uint32_t tgid, uint32_t inner)
{
	mt_cleanup(mt_proc_closep) DIR *threads = mt_proc_threads(tgid);
	uint32_t tid;

	while ((tid = mt_proc_next(threads)) && mt_proc_inner_tgid(tid) != inner)
		;
	return tid;
}
