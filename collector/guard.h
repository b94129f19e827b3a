/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * guard.h - memtrack-run's part in pressure: what must happen though the collector does not act
 *
 * The collector may be slow, stopped or dead.  So it is memtrack-run that looks at the latch
 * (wire/control.h) where an episode may last for a time only, and ends the tracked tree when
 * that is over; and that continues the processes that the collector had stopped when it
 * died (collector/holds.h).
 *
 * The tree is what descends from the command, and whatever has the run's copy of the shim
 * mapped, wherever it descends from by now.
 *
 * Contract
 *   Input:     descriptors from the collector, of the control page and of the holds' page; the
 *              targets write the former, who so can have themselves ended.
 *   Ownership: mt_guard_open() takes over the descriptors, and maps for mt_guard_close(), which
 *              may be called for a guard that is all zero.
 *   Errors:    negative errno of mmap(2).
 *   Threads:   one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/holds.h"
#include "collector/place.h"
#include "wire/control.h"

/* The descriptors, in this order; the second only where processes are stopped. */
#define MT_GUARD_CONTROL 0
#define MT_GUARD_HOLDS 1
#define MT_GUARD_FDS 2

/* Between SIGTERM and SIGKILL. */
#define MT_GUARD_GRACE_NS (2 * 1000 * 1000 * 1000ULL)

struct mt_guard {
	const struct mt_control *control;
	struct mt_holds_page *holds; /* NULL: nobody is ever stopped */
	uint64_t timeout_ns;	     /* UINT64_MAX: an episode may last for ever */
	uint64_t latch;		     /* as it was when it was looked at last; 0: no episode */
	uint64_t since_ns;	     /* when that was first seen */
	uint64_t term_ns;	     /* when the tree was asked to end; 0: it was not */
	pid_t root;
	struct mt_place_marks marks; /* what the run's processes have loaded */
};

/* fds: -1 where there is none.  directory: a descriptor of the run's, with the shim in it. */
int mt_guard_open(struct mt_guard *guard, int *fds, uint64_t timeout_ns, pid_t root, int directory);
void mt_guard_close(struct mt_guard *guard);

/* For poll(2): until the guard has to be looked at again, or -1. */
int mt_guard_wait_ms(const struct mt_guard *guard);

/* Ends the tree, first gently, if an episode lasts too long; returns whether it does so. */
bool mt_guard_tick(struct mt_guard *guard);

/* The command has ended, by us: what is left of the tree ends, too. */
void mt_guard_sweep(struct mt_guard *guard);

/* The collector has ended. */
void mt_guard_undo_holds(struct mt_guard *guard);
