/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * processes.h - who is who: processes, threads, and which of them a slot's cells are of
 *
 * Processes are known by the number that the run gave them (mt_control.next_process), by
 * their tgid while they live, and by the id that they have in the artifact.  Each has the
 * modules that its stacks are unwound with; a fork's child begins with its parent's.
 *
 * Contract
 *   Input:     cells and arrivals as the targets sent them: numbers are checked, unknown
 *              ones make a process of which only that is known, as long as there are not
 *              more than there can be.
 *   Ownership: mt_processes_new() gives an object for mt_processes_free(), which takes
 *              NULL; encode is borrowed, and is put the records of the artifact.
 *   Errors:    -EBADMSG: a number that is none, or (arrival) is taken; -ENOMEM and what
 *              mt_encode_put() returns.
 *   Threads:   one.
 *   Bounds:    live processes, their threads and modules, and those of MT_PROCESSES_KEPT
 *              that ended; 16 bytes for any other that ended.
 */
#include <stdbool.h>
#include <stdint.h>

#include "collector/encode.h"
#include "collector/modules.h"
#include "collector/session.h"
#include "collector/space.h"
#include "wire/ring.h"

/* Processes that ended last, kept for the children that are heard of later. */
#define MT_PROCESSES_KEPT 128

struct mt_processes;

int mt_processes_new(struct mt_encode *encode, struct mt_modules *modules,
		     struct mt_processes **ret);
void mt_processes_free(struct mt_processes *processes);

/* A process shook hands.  One of the same tgid that lived until now is of the past. */
int mt_processes_arrive(struct mt_processes *processes, const struct mt_arrival *arrival);

/* A THREAD cell: the slot is another thread's from here on. */
int mt_processes_thread(struct mt_processes *processes, uint32_t slot, const struct mt_cell *cell);

/* A PROCESS cell. */
int mt_processes_process(struct mt_processes *processes, uint32_t slot, const struct mt_cell *cell);

/* A MT_RECORD_MODULE of the slot's process. */
int mt_processes_module(struct mt_processes *processes, uint32_t slot, const void *record,
			size_t len);

/* What an event of the slot needs; ret_space is the process's. */
struct mt_cell_owner {
	uint32_t thread; /* id in the artifact */
	struct mt_space *space;
	uint32_t tgid;
};

/* The process whose thread has the slot; 0: none, or not known yet. */
uint32_t mt_processes_tgid(const struct mt_processes *processes, uint32_t slot);

/* -ENOENT: no thread has claimed the slot. */
int mt_processes_owner(struct mt_processes *processes, uint32_t slot, struct mt_cell_owner *ret);

/* A thread or, with group_dead, a process exited; name is its last.  It takes effect when
 * mt_processes_advance() comes to its time. */
int mt_processes_exit(struct mt_processes *processes, uint32_t tgid, uint32_t tid, bool group_dead,
		      int status, uint64_t time_ns, const char *name);

/* All cells below below_ns were handed on: ends, in the artifact, the processes whose end
 * lies there. */
int mt_processes_advance(struct mt_processes *processes, uint64_t below_ns);

/* Looks at what no kernel event tells of: names that changed, processes that are gone.
 * For runs without BPF; costs a few system calls for each live thread. */
int mt_processes_sweep(struct mt_processes *processes, const struct mt_segments *segments);

/* Whether a process that shook hands at since_ns or later, or its fork, has this tgid. */
bool mt_processes_tracked(const struct mt_processes *processes, uint32_t tgid, uint64_t since_ns);

/* Whether a thread of the process had a slot at the last sweep: none has where it executed a
 * program that is not tracked. */
bool mt_processes_holds(const struct mt_processes *processes, uint32_t tgid);

/* The living ones whose number means something here. */
void mt_processes_each(const struct mt_processes *processes, void (*fn)(void *ctx, uint32_t tgid),
		       void *ctx);

/* Processes that have not ended. */
uint32_t mt_processes_live(const struct mt_processes *processes);

static inline void mt_processes_freep(struct mt_processes **processes)
{
	mt_processes_free(*processes);
}
