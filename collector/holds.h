/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * holds.h - processes of the run that are stopped for a while
 *
 * A process that is held was stopped for it; its release continues it, unless somebody else
 * wants it stopped: then it is left to them.  A process that somebody else had stopped
 * before is not touched at all.
 *
 * Who stopped it?  The kernel does not say, but signals that are pending tell:
 *
 *   - Our SIGSTOP goes to the main thread (PIDFD_SIGNAL_THREAD), anybody's kill(2) to the
 *     process: they are pending in different sets (SigPnd and ShdPnd of /proc/TGID/status)
 *     and never merge.  A SIGSTOP that comes to a process that stands still stays pending.
 *   - Once the process stands still by our signal, a second one is sent, the seal, which
 *     stays pending.  Any SIGCONT, from whomever, breaks the seal: the kernel throws pending
 *     stop signals away with it.
 *
 * So, when a process is released (decide() in holds.c has it as a table): a stop that is
 * pending for the process is somebody else's who came later; a broken seal is somebody's who
 * continued it, and maybe stopped it again; with the seal, and nothing beside it, the stop is
 * ours alone, and so is SIGCONT.
 *
 * What can not be told apart: somebody's SIGSTOP that comes in the microseconds between that
 * look and our SIGCONT is undone with it; there is no signal "continue if".  Likewise a
 * SIGCONT and a SIGSTOP of somebody that both come between our SIGSTOP and the seal are
 * taken for ours; and a SIGSTOP of somebody that comes when the collector is killed right
 * before its own.  None of that leaves a process stopped: tests/model/hold.py looks at all
 * interleavings.  Before Linux 6.9 a signal can not be sent to a thread by a pidfd: there
 * is no seal, and a SIGSTOP that comes before ours was taken merges with it.
 *
 * The death of the collector: which processes are held is in a page that memtrack-run has
 * mapped too.  An entry is there before the signal is sent, and goes after the process was
 * continued; memtrack-run, when the collector has ended, continues what is in it, by the same
 * table (mt_holds_undo()).
 *
 * Contract
 *   Input:     tgids as the collector's PID namespace has them.  Whether one is a process
 *              of the run, ours() says, after its pidfd was opened: a number that is used
 *              again never gets a signal.
 *   Ownership: mt_holds_new() gives an object for mt_holds_free(), which releases all
 *              processes and takes NULL.  The page's descriptor is the object's.
 *   Errors:    negative errno of memfd_create(2), mmap(2).  mt_holds_take(): -ENOSPC: too
 *              many; -EMFILE; -EPERM: may not be signalled; -ESRCH: gone, or not ours;
 *              nothing is held then.
 *   Threads:   one.
 *   Bounds:    MT_HOLDS_MAX processes, a descriptor for each while it is held.  Does not
 *              wait for a process to stand still but for MT_HOLDS_SEAL_NS altogether.
 */
#include <stdbool.h>
#include <stdint.h>

#define MT_HOLDS_MAX 1024
#define MT_HOLDS_SEAL_NS (2 * 1000 * 1000ULL)

/* How far a stop has come; in the page, so these are numbers of a protocol. */
enum mt_held_how {
	MT_HELD_NONE,	 /* no signal of ours */
	MT_HELD_PLAIN,	 /* sent to the process: no seal to come */
	MT_HELD_SENT,	 /* sent to the main thread */
	MT_HELD_SEALING, /* it stood still; the seal is on its way */
	MT_HELD_SEALED,	 /* the seal was seen pending */
};

struct mt_held {
	uint32_t tgid;
	uint32_t how;	      /* enum mt_held_how; stored last, and first cleared */
	uint64_t start_ticks; /* of the process, field 22 of /proc/TGID/stat */
};

/* Written by the collector, then, when that has ended, by memtrack-run. */
struct mt_holds_page {
	uint32_t turn; /* odd while processes are held; each change is one more */
	uint32_t spare;
	struct mt_held held[MT_HOLDS_MAX];
};

struct mt_holds;

int mt_holds_new(bool (*ours)(void *ctx, uint32_t tgid), void *ctx, struct mt_holds **ret);
void mt_holds_free(struct mt_holds *holds);

/* To hand to memtrack-run: a memfd with a struct mt_holds_page. */
int mt_holds_page_fd(const struct mt_holds *holds);

/* Holds the process, and stops it for that; one that is held already stays so. */
int mt_holds_take(struct mt_holds *holds, uint32_t tgid);

/* Seals what stands still and is not sealed yet: after a round of mt_holds_take(), and again
 * while holds last. */
void mt_holds_seal(struct mt_holds *holds);

/* A process that is let go of; paused_ns: since it was held; 0 where it was never stopped by
 * us. */
typedef void (*mt_let_go_fn)(void *ctx, uint32_t tgid, uint64_t paused_ns);

/* Releases all; fn, or NULL, is told of each process.  Returns whether one of them was left to
 * somebody else's stop. */
bool mt_holds_drop(struct mt_holds *holds, mt_let_go_fn fn, void *ctx);

/* memtrack-run's side: the collector has ended.  Continues what it had stopped. */
void mt_holds_undo(struct mt_holds_page *page);

static inline void mt_holds_freep(struct mt_holds **holds)
{
	mt_holds_free(*holds);
}
