/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * regular.h - a file that a tracked process names, opened only if it is a regular one
 *
 * The path is the target's, the rights may be root's: to open a device or a FIFO can do
 * something, and it may have taken a file's place a moment ago.  So it is found first, looked
 * at, and what was looked at is opened.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A descriptor to read from, close-on-exec; -EINVAL: not a regular file; what open(2) says. */
static inline int mt_regular_open(const char *path)
{
	mt_cleanup(mt_closep) int found = open(path, O_PATH | O_CLOEXEC);
	char name[sizeof("/proc/self/fd/") + 11];
	struct stat st;
	int fd;

	if (found < 0 || fstat(found, &st) < 0)
		return mt_neg_errno();
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? mt_neg_errno() : fd;
}
