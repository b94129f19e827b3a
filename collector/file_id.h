/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * file_id.h - is this the file that was there before, with the content that it had?
 *
 * A file is known by device, inode, size and times: one that was written to is another.
 */
#include <stdbool.h>
#include <sys/stat.h>

struct mt_file_id {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

static inline struct mt_file_id mt_file_id_of(const struct stat *st)
{
	return (struct mt_file_id){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
}

static inline bool mt_file_id_same(const struct mt_file_id *a, const struct mt_file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec &&
	       a->ctime.tv_sec == b->ctime.tv_sec && a->ctime.tv_nsec == b->ctime.tv_nsec;
}

/*
 * Whether somebody who looks at path later is likely to find the file there: it has a name, and
 * is there now, as seen from here, and from where this run was started: the furthest of our
 * ancestors that lets us look there, as our own mount namespace may end with the run.
 */
bool mt_file_id_stays(const struct mt_file_id *file, const char *path);
