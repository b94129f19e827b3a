/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inside.c - see inside.h for the contract
 */
#include "collector/inside.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/proc_state.h"

/* The next thread of those that are listed; 0: no more. */
static uint32_t next_thread(DIR *tasks)
{
	const struct dirent *entry;
	uint32_t tid = 0;

	while (!tid && (entry = readdir(tasks)))
		tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
	return tid;
}

static DIR *open_threads(uint32_t tgid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	return tgid ? opendir(path) : NULL;
}

static uint32_t child_of_thread(uint32_t tgid, uint32_t tid, uint32_t inner)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	unsigned int child;
	char name[32];

	snprintf(name, sizeof(name), "task/%u/children", tid);
	file = mt_proc_open(tgid, name);
	while (file && fscanf(file, "%u", &child) == 1)
		if (mt_proc_inner_tgid(child) == inner)
			return child;
	return 0;
}

uint32_t mt_inside_child(uint32_t parent, uint32_t inner)
{
	DIR *tasks = open_threads(parent);
	uint32_t tid, child = 0;

	while (tasks && !child && (tid = next_thread(tasks)))
		child = child_of_thread(parent, tid, inner);
	if (tasks)
		closedir(tasks);
	return child;
}

uint32_t mt_inside_thread(uint32_t tgid, uint32_t inner)
{
	DIR *tasks = open_threads(tgid);
	uint32_t tid = 0;

	while (tasks && (tid = next_thread(tasks)) && mt_proc_inner_tgid(tid) != inner)
		;
	if (tasks)
		closedir(tasks);
	return tid;
}
