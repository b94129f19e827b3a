/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * copy_file.h - a program's file, once more
 *
 * Contract
 *   Input:     to must not exist; it becomes executable
 *   Errors:    as of demand.h
 *   Bounds:    never allocates
 */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

static inline void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	off_t done = 0;
	struct stat st;

	demand(in >= 0 && out >= 0 && !fstat(in, &st));
	while (done < st.st_size)
		demand(sendfile(out, in, &done, (size_t)(st.st_size - done)) > 0);
	close(in);
	close(out);
}
