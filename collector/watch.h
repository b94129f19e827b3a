/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * watch.h - programs of the tree that run without the shim, found and named
 *
 * A process that executes a program and does not shake hands within a second, or ends
 * before it did, is not tracked; why is read off its file: statically linked, another word
 * size or C library, set-user-ID, an environment without our LD_PRELOAD.
 *
 * The kernel part tells of each exec.  Without it, the tree below the command is looked
 * through now and then (mt_watch_scan()), which finds programs that run for a while only.
 *
 * Contract
 *   Ownership: mt_watch_new() gives an object for mt_watch_free(), which takes NULL; the
 *              strings of a report are the watch's until the callback returns.
 *   Errors:    -ENOMEM.
 *   Threads:   one.
 *   Bounds:    MT_WATCH_PENDING programs that are waited for; one more is reported as not
 *              tracked at once if it has no shim, and else not waited for.  Of what /proc
 *              says of a process's environment and mappings the first MT_PROC_FILE_BYTES
 *              (collector/proc_state.h) are looked through.
 */
#include <stdbool.h>
#include <stdint.h>

#define MT_WATCH_PENDING 4096
#define MT_WATCH_PATIENCE_NS (1000 * 1000 * 1000ULL)

typedef int (*mt_not_tracked_fn)(void *ctx, uint32_t tgid, const char *what, const char *reason);

struct mt_watch;

/* shim_name: the file name of the shim, as it stands in a process's mappings. */
int mt_watch_new(const char *shim_name, mt_not_tracked_fn fn, void *ctx, struct mt_watch **ret);
void mt_watch_free(struct mt_watch *watch);

/* Process tgid executes path ("" if not known), and is called name; its time runs from
 * now_ns. */
int mt_watch_exec(struct mt_watch *watch, uint32_t tgid, const char *path, const char *name,
		  uint64_t now_ns);
/* It executed that before what it has shaken hands for: reported if the file can not be
 * tracked. */
int mt_watch_passed(struct mt_watch *watch, uint32_t tgid, const char *path, const char *name);
/* It shook hands; what it executed before is reported if that could not. */
int mt_watch_arrived(struct mt_watch *watch, uint32_t tgid);
/* It ended. */
int mt_watch_exit(struct mt_watch *watch, uint32_t tgid);
/* Reports those whose time is over. */
int mt_watch_tick(struct mt_watch *watch, uint64_t now_ns);

/* For runs without the kernel part: process tgid is about to execute name, the command, as
 * execvp(3) finds it. */
void mt_watch_root(struct mt_watch *watch, uint32_t tgid, const char *name, uint64_t now_ns);
/* And, at their end, reports those that a scan found, or the command, if they ended before
 * they registered. */
int mt_watch_finish(struct mt_watch *watch);

/* Looks for processes below root (itself included) that are not known to tracked() and
 * have no shim in their mappings: also such as had one, in what they executed before. */
int mt_watch_scan(struct mt_watch *watch, uint32_t root, uint64_t now_ns,
		  bool (*tracked)(void *ctx, uint32_t tgid), void *tracked_ctx);

static inline void mt_watch_freep(struct mt_watch **watch)
{
	mt_watch_free(*watch);
}
