/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * proc_state.h - the state letter of a process, as proc(5) gives it
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* 'R', 'S', 'T', 'Z' and so on; 0 if there is no such process, or it can not be looked at. */
static inline char mt_proc_state(uint32_t tgid)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	char path[32], stat[256];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	stat[fread(stat, 1, sizeof(stat) - 1, file)] = '\0';
	state = strrchr(stat, ')'); /* the name before it may have anything in it */
	return state && state[1] == ' ' ? state[2] : 0;
}
