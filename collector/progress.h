/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * progress.h - how far a run is, from the collector to memtrack-run's line on the terminal
 *
 * memtrack-run asks (MT_MESSAGE_ASK), the collector answers once (MT_MESSAGE_PROGRESS), and
 * not more often than each MT_PROGRESS_NS.  So there is never more than one answer on the
 * channel, however long memtrack-run does not read it, and none if there is no terminal.
 *
 * Contract
 *   Input:   a message is checked: what is no progress gives -EBADMSG.
 *   Errors:  an answer that finds the channel full or closed is dropped.
 *   Threads: one.
 *   Bounds:  nothing waits; a text ends within MT_PROGRESS_ROOM.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/channel.h"

#define MT_PROGRESS_NS (250 * 1000 * 1000ULL)
#define MT_PROGRESS_ROOM 128

struct mt_progress {
	uint64_t events;
	uint64_t chains;
	bool paused; /* threads had to wait for the collector since the last */
};

/* The collector's side. */
struct mt_progress_pace {
	uint64_t next_ns; /* not before that */
	bool asked;
	bool paused; /* set by whoever sees a pause, cleared by an answer */
};

bool mt_progress_due(const struct mt_progress_pace *pace, uint64_t now_ns);
void mt_progress_tell(struct mt_progress_pace *pace, int channel, uint64_t now_ns, uint64_t events,
		      uint64_t chains);

/* memtrack-run's. */
int mt_progress_parse(const struct mt_message *message, struct mt_progress *ret);
void mt_progress_format(const struct mt_progress *progress, uint64_t artifact_bytes, char *ret,
			size_t room);
