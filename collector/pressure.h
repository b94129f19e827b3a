/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * pressure.h - the coordinator: from a ring at its watermark to threads that go on
 *
 * Whoever finds a ring at its watermark latches an episode (wire/control.h).  The coordinator
 * sees that before its next pass, takes a snapshot of what producers have put on all rings,
 * lets the passes drain all of it - events, stacks, modules, lives - and releases:
 * it clears the latch, moves the gate's futex, wakes.
 *
 *   MT_PAUSE_FUTEX   threads with the shim park by themselves while the latch is set
 *   MT_PAUSE_SIGNAL  nobody parks: the run's processes are stopped when the latch is seen, and
 *                    continued after the release (collector/holds.h)
 *   MT_PAUSE_NEVER   nobody is paused; an episode is told of all the same
 *
 * A ring that is really full is waited for in either way of pausing: the thread has latched,
 * and sleeps on the gate's futex until the release.
 *
 * Contract
 *   Input:     the latch and the heads are the targets' words: an episode from a time that
 *              can not be is told with one that can; a ring whose head goes back does not
 *              hold up the release.
 *   Ownership: mt_pressure_new() gives an object for mt_pressure_free(), which takes NULL;
 *              what the configuration names is borrowed.
 *   Errors:    -ENOMEM.  A process that can not be stopped goes on: its threads find their
 *              rings full.
 *   Threads:   the pipeline's.
 *   Bounds:    16 bytes for each slot; 16 for each process that an episode paused.
 */
#include <stdbool.h>
#include <stdint.h>

#include "collector/holds.h"
#include "collector/merge.h"
#include "collector/probes.h"
#include "collector/processes.h"
#include "collector/segments.h"
#include "collector/stats.h"

/* An episode that is over.  latch_ns < release_ns. */
struct mt_pressure_episode {
	uint32_t ring;	/* MT_LATCH_*: a thread's, that of slot; "stacks"; "life" */
	uint32_t slot;	/* of the thread that latched; not for "life" */
	uint32_t pause; /* MT_PAUSE_* */
	uint64_t latch_ns;
	uint64_t release_ns;
	const struct mt_stats_pause *processes; /* by tgid; until the callback returns */
	uint32_t n_processes;
};

typedef void (*mt_episode_fn)(void *ctx, const struct mt_pressure_episode *episode);

struct mt_pressure_config {
	struct mt_segments *segments;
	struct mt_probes *probes; /* NULL: inline */
	const struct mt_merge *merge;
	const struct mt_processes *processes;
	struct mt_holds *holds; /* NULL: no process is ever stopped */
	/* How long an episode lasts at most for threads to park together that run on. */
	uint64_t gather_ns;
	mt_episode_fn on_episode; /* or NULL */
	/* Processes were continued, all of them that are to be; or NULL.  One may stand still: it
	 * was left to somebody else's stop, or has stopped itself since it goes on, while who
	 * waits for it took that for the pause. */
	void (*on_released)(void *ctx);
	void *ctx;
};

struct mt_pressure;

int mt_pressure_new(const struct mt_pressure_config *config, struct mt_pressure **ret);
void mt_pressure_free(struct mt_pressure *pressure);

/* Before a pass: begins the episode that is latched, if one is. */
void mt_pressure_look(struct mt_pressure *pressure);

/* After a pass: releases, if that has drained all of the snapshot. */
void mt_pressure_settle(struct mt_pressure *pressure);

/* Whether an episode is being drained: the next pass is not to wait. */
bool mt_pressure_is_on(const struct mt_pressure *pressure);

/* Whether it goes on only for threads that are to park yet: there is no hurry. */
bool mt_pressure_is_gathering(const struct mt_pressure *pressure);

/* Episodes that are over, and the most processes that one of them paused. */
uint64_t mt_pressure_episodes(const struct mt_pressure *pressure);
uint32_t mt_pressure_most_paused(const struct mt_pressure *pressure);

/* At the end of a run, or of the recording: releases, and begins no other. */
void mt_pressure_stop(struct mt_pressure *pressure);

/* How much of the time from since_ns to now_ns threads ran: an episode ends, and another begins. */
uint64_t mt_pressure_running_ns(const struct mt_pressure *pressure, uint64_t since_ns,
				uint64_t now_ns);

static inline void mt_pressure_freep(struct mt_pressure **pressure)
{
	mt_pressure_free(*pressure);
}
