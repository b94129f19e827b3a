/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * rest.h - a collector that has had nearly nothing to do sleeps longer, and is woken
 *
 * Between two passes is a millisecond usually.  While next to nothing comes, that is a thousand
 * wake-ups a second for nothing: the collector rests then, for MT_REST_NS at a time, and says so
 * in the gate (wire/ring.h).  A thread that parks, waits for room, or has sent a stack that is new
 * sees that and wakes it; BPF does the same by the rings' descriptors.  An event of a known stack
 * costs no more for it: it waits for the rest's end, or until it fills a ring with others.
 *
 * Only where threads park by themselves (MT_PAUSE_FUTEX), and all of them may make a system call
 * to wake us: else what has been latched is to be seen by the clock.
 *
 * Contract
 *   Input:     who rings may be anybody of the run, at any time: a pass too many comes of it.  The
 *              word in the gate may be anything.
 *   Ownership: mt_rest_new() gives an object for mt_rest_free(), which takes NULL; the segments
 *              are borrowed.
 *   Errors:    negative errno of eventfd(2) and pthread_create(3).
 *   Threads:   one; and one of its own, which turns a futex into a descriptor.
 *   Bounds:    a wake-up that comes while that thread deals with the one before is lost: then a
 *              rest lasts its MT_REST_NS, as does the one in which a process is sandboxed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "collector/segments.h"

#define MT_REST_NS (20 * 1000 * 1000ULL)
/* What comes is looked at for so long: next to nothing is less than an eighth of a ring, all rings
 * together, so that what comes in a rest fills none. */
#define MT_REST_QUIET_NS (50 * 1000 * 1000ULL)
#define MT_REST_RING_SHARE 8

struct mt_rest;

int mt_rest_new(struct mt_segments *segments, struct mt_rest **ret);
void mt_rest_free(struct mt_rest *rest);

/* After a pass, which has handed on so many cells. */
void mt_rest_note(struct mt_rest *rest, uint64_t cells, uint64_t now_ns);

/* Begins a rest; false: there is something to do. */
bool mt_rest_begin(struct mt_rest *rest);
/* woken: more is to come, the next rest is not at once. */
void mt_rest_end(struct mt_rest *rest, bool woken);

/* For poll(2): readable when somebody has rung since the rest began. */
int mt_rest_fd(const struct mt_rest *rest);
