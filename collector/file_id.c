/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file_id.c - see file_id.h
 */
#include "collector/file_id.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "collector/proc_state.h"

/* Of ancestors, so many are asked for. */
#define ANCESTORS_MAX 256

static bool is_at(const struct mt_file_id *file, const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_nlink && st.st_dev == file->dev && st.st_ino == file->ino;
}

static bool has_root(uint32_t tgid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/root/.", tgid);
	return !stat(path, &st);
}

/* The furthest of this process's ancestors whose files we may look at; or this process. */
static uint32_t outermost(void)
{
	static atomic_uint found; /* it does not change, but when it ends */
	uint32_t tgid = atomic_load_explicit(&found, memory_order_relaxed), parent;

	if (tgid)
		return tgid;
	tgid = (uint32_t)getpid();
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		parent = mt_proc_parent(tgid);
		if (!parent || !has_root(parent))
			break;
		tgid = parent;
	}
	atomic_store_explicit(&found, tgid, memory_order_relaxed);
	return tgid;
}

bool mt_file_id_stays(const struct mt_file_id *file, const char *path)
{
	char outside[PATH_MAX + 64];
	uint32_t tgid;

	if (!path || path[0] != '/' || !is_at(file, path))
		return false;
	tgid = outermost();
	if (tgid == (uint32_t)getpid() || !has_root(tgid))
		return true;
	snprintf(outside, sizeof(outside), "/proc/%u/root%s", tgid, path);
	return is_at(file, outside);
}
