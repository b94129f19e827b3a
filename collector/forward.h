/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * forward.h - signals between whoever started memtrack-run and the command
 *
 * A signal that somebody sends to memtrack-run is sent on to the command.  One that the
 * terminal sends has reached the command already, as a member of the same group, and is
 * not sent twice; but for the terminal's end, of which only the session's leader is told.
 * A command that stops stops memtrack-run too, so that a shell sees it; but not one that
 * memtrack has stopped for a pause (collector/holds.h).
 *
 * Contract
 *   Ownership: mt_forward_init() blocks the signals and remembers mask and dispositions;
 *              mt_forward_restore() gives them back, in the command's process.  Our own
 *              stay blocked until mt_forward_release().
 *   Errors:    negative errno of signalfd(2).
 *   Threads:   one.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mt_forward {
	int fd; /* readable when a signal is there */
	/* Odd while memtrack itself has processes stopped, changed each time; NULL: never. */
	const uint32_t *turn;
	/* Told before we stop ourselves (true) and after (false); or NULL. */
	void (*on_sleep)(void *ctx, bool asleep);
	void *ctx;
	pid_t waker;	  /* our child whose SIGCONT is for us alone, or 0 */
	bool waker_ended; /* before the command */
	int waker_status; /* then, as of waitpid(2) */
	sigset_t mask;
	sigset_t ignored;
};

int mt_forward_init(struct mt_forward *ret);
void mt_forward_restore(const struct mt_forward *forward);

/* The command has ended: what was for it is dropped, and from now on signals are for us. */
void mt_forward_release(struct mt_forward *forward);

/* The command may have been left stopped by a pause: if it is, stops us, too. */
void mt_forward_look(const struct mt_forward *forward, pid_t tgid);

/* Handles the signals that are there, and ends of orphans that became our children; returns
 * whether the command ended, with its status. */
bool mt_forward_handle(struct mt_forward *forward, pid_t tgid, int *ret_status);
