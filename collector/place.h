/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * place.h - the files of a run: its directory, its copy of the shim, its artifact
 *
 * Each run preloads a copy of the shim, in a directory of its own: probes on one file are
 * then one run's, the path has no character that the loader would split it at, and the
 * file stays what it was while a package is upgraded.
 *
 *   shim           the copy
 *   socket         the collector listens at it
 *   x86_64 ...     links to the directory itself
 *   i686/          the shim's name again, for an empty library
 *
 * LD_PRELOAD names ${PLATFORM}/shim: the loader of a 64-bit program finds the copy there, that
 * of a 32-bit one, which could not load it and would say so, the empty library.  Who expands
 * the word otherwise, as make and a shell that reads back what env(1) printed do, is left
 * with the path of the copy.
 *
 * Contract
 *   Ownership: mt_place_open() makes the directory, for mt_place_close(), which removes the
 *              directory and what is in it, or for mt_place_leave(), which lets whoever else
 *              knows it do that by mt_place_outlive() or mt_place_remove().
 *   Errors:    negative errno; place.what says which file or directory it is about.
 *   Threads:   one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MT_SHIM_NAME "libmemtrack-preload.so"

struct mt_place {
	int fd; /* of the directory */
	char directory[64];
	char shim[128];	   /* path of the copy */
	char preload[128]; /* the same, as LD_PRELOAD is to name it */
	char socket[128];  /* path that the collector listens at */
	char what[4200];   /* of an error */
};

int mt_place_open(struct mt_place *ret);
/* Puts in all but the socket.  shim_source: path of the installed shim. */
int mt_place_fill(struct mt_place *place, const char *shim_source);
void mt_place_close(struct mt_place *place);
void mt_place_leave(struct mt_place *place);

/* Opens a directory that is somebody else's, while that one surely has it: later the name may be
 * anybody's.  Returns a descriptor for what is below. */
int mt_place_attend(const char *directory);

/* Removes the directory, or what is left of it; never what has only its name. */
void mt_place_remove(int fd, const char *directory);

/* What the directory's libraries, two at most, are known by where a process has them mapped. */
struct mt_place_marks {
	char marks[2][48];
};

/* The directory is filled by then.  -ENOENT: /proc does not show what we have mapped. */
int mt_place_mark(int fd, struct mt_place_marks *ret);

/* Whether the process has one of them loaded: the very file, whatever others are called, and not
 * as data, as who was handed a descriptor of it would have it mapped. */
bool mt_place_is_loaded(const struct mt_place_marks *marks, uint32_t tgid);

/* Whether a process has a library of the directory mapped, as far as the file system tells
 * (overlayfs does not), or has the directory in its environment: what it executes looks for it. */
bool mt_place_in_use(int fd, const char *directory);

/* Whether no process has the shim mapped any more, for certain: none is in the middle of anything
 * that it does.  False also where the file system can not tell. */
bool mt_place_is_left(int fd);

/* Waits until nobody uses it; then removes the directory. */
void mt_place_outlive(int fd, const char *directory);

/*
 * Opens the artifact for writing: path, or below it, if it is a directory, or NULL for
 * the current one, memtrack.COMMAND.TGID.mtk.  Nothing that is there is truncated yet;
 * ret_created says that there was nothing.  Only a regular file will do: else -EINVAL; and
 * one run at a time: else -EBUSY, as long as the descriptor or a copy of it is open.  what
 * gets the path, in any case.
 */
int mt_place_open_output(const char *path, const char *command, pid_t tgid, char *what,
			 size_t what_room, bool *ret_created);

/*
 * Opens a file for statistics, before anything else is done; one that is not regular is opened
 * so that writes do not wait.  Else as mt_place_open_output().
 */
int mt_place_open_stats(const char *path, bool *ret_created);
