/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * session.h - the process's part in a run: hand-shake, mappings, fork
 *
 * Contract
 *   Ownership: mappings live as long as the process; no descriptor is kept
 *   Errors:    what fails leaves the process untracked; nothing is printed, errno is kept
 *   Threads:   any; the first that comes shakes hands, the others keep their events until
 *              it is done
 *   Bounds:    MT_PROCESS_CHUNKS chunks; a hand-shake waits as long as the collector lives
 */
#include <stdbool.h>
#include <stdint.h>

#include "preload/address.h"
#include "wire/control.h"
#include "wire/learned.h"
#include "wire/reference.h"
#include "wire/ring.h"
#include "wire/session.h"

#pragma GCC visibility push(hidden)

/* Chunks that a process may have: 4,096 threads that allocate at the same time. */
#define MT_PROCESS_CHUNKS 512

struct mt_recent;
struct mt_trail;

/* What this process has of a slot for itself. */
struct mt_own {
	char *copy;			  /* room for the copy of a window; NULL: not yet */
	const struct mt_learned *learned; /* the chunk's; NULL: there is none, or no trail */
	struct mt_trail *trail;		  /* preload/learned.h */
	struct mt_recent *recent;	  /* preload/recent.h; behind the trail */
};

/* Slots as this process has them mapped. */
struct mt_chunk {
	struct mt_thread *heads;
	char *rings;
	char *references; /* NULL: MT_RUN_RAW */
	uint64_t references_stride;
	uint64_t scratch_offset;
	uint32_t first_slot;
	uint32_t capture;		  /* MT_CAPTURE_* */
	const struct mt_learned *learned; /* NULL: there is none */
	struct mt_own own[MT_CHUNK_SLOTS];
};

enum mt_phase {
	MT_PHASE_START,	    /* nothing is known */
	MT_PHASE_RESOLVING, /* one thread looks for the real functions */
	MT_PHASE_RESOLVED,  /* they can be called; whether there is a run is open */
	MT_PHASE_ASKING,    /* one thread shakes hands */
	MT_PHASE_DECIDED,
};

struct mt_session {
	int phase; /* enum mt_phase */
	int on;	   /* tracked: set before the last phase, cleared when the collector is gone */

	struct mt_control *control;
	const struct mt_gate *gate;
	struct mt_address address;
	uint32_t budget_bytes;
	uint32_t ring_bytes;
	uint32_t flags; /* MT_RUN_* */

	/* mt_session_token(); becomes 0 in a fork's child, also in that of a raw clone(). */
	uint64_t *fork_word;
	uint64_t process;
	/* The last one, of this and those that it is a fork of, of which the collector was told:
	 * another thread may fork at any moment, and that is what the child has for a parent. */
	uint64_t told;
	uint32_t start;	   /* MT_PROCESS_* */
	long pid;	   /* of a fork's child, as its namespace has it; else 0 */
	int announced;	   /* enum mt_announced */
	int modules_fixed; /* fork's child: a thread that stayed behind has the loader's lock */
	int probe_absent;  /* the probe was seen not to work */
	uint32_t epoch; /* moves where known stacks may mean other code: mt_session_move_epoch() */
	uint64_t main_thread; /* its thread pointer */

	int chunk_lock;
	uint32_t n_chunks; /* published after the chunk */
	struct mt_chunk chunks[MT_PROCESS_CHUNKS];
};

/* The PROCESS cell, which comes before all that other threads of the process append. */
enum mt_announced { MT_ANNOUNCED_NOT, MT_ANNOUNCED_BUSY, MT_ANNOUNCED_DONE };

extern struct mt_session mt_session;

/*
 * Something was unloaded, or this is another process: what was known of stacks is known no more,
 * also what the slot's last owner left.  An epoch that nobody in the run has had, short of 2^32
 * of them.
 */
void mt_session_move_epoch(void);

/* Names this process among those that share an image by fork; neither 0 nor 1. */
static inline uint64_t mt_session_token(void)
{
	return 2 * mt_session.process + 2;
}

/* In fork_word while one thread of a fork's child, its only one as a rule, sees to it. */
#define MT_FORK_BUSY 1

/* Is this a fork's child that mt_session_fork() is not through with? */
static inline bool mt_session_forked(void)
{
	return __atomic_load_n(mt_session.fork_word, __ATOMIC_ACQUIRE) <= MT_FORK_BUSY;
}

/* Gets on as far as can be; may the real functions be called? */
bool mt_session_start(void);

static inline bool mt_session_decided(void)
{
	return __builtin_expect(
		__atomic_load_n(&mt_session.phase, __ATOMIC_ACQUIRE) == MT_PHASE_DECIDED, 1);
}

/* May the real functions be called? */
static inline bool mt_session_usable(void)
{
	return mt_session_decided() || mt_session_start();
}

/*
 * Another chunk; what: MT_HELLO_CHUNK or MT_HELLO_INLINE.  Signals are blocked.  known: the
 * number of chunks that were searched; where there are more by now, none is asked for.
 */
bool mt_session_grow(uint32_t what, uint32_t known);

/* The collector is gone: the process goes on untracked. */
void mt_session_end(void);

/* Has the collector ended, in whatever way? */
bool mt_session_orphaned(void);

/* In a fork's child, before anything else is recorded. */
void mt_session_fork(void);

#pragma GCC visibility pop
