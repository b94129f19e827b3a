/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * launch.h - the command, started as it would be without us but for two variables
 *
 * Contract
 *   Input:     an argument vector for execvp(3).
 *   Ownership: mt_launch_fork() makes a child that waits for mt_launch_go(); one that is
 *              given up, by mt_launch_cancel(), never executes anything.  Interval timers
 *              of ours become the command's; the signal that would tell us of our parent's
 *              end tells it of ours.
 *   Errors:    negative errno.  mt_launch_go() returns what execvp() failed with; 0 also if the
 *              child was killed before that, which waitpid(2) tells.
 *   Threads:   one; signals must be blocked and their dispositions saved by
 *              collector/forward.h before the fork.
 *
 * Under sudo the child becomes the invoking user (SUDO_UID, SUDO_GID) before it executes.
 * The environment gets LD_PRELOAD, extended at its front, and MEMTRACK_RUN; a shim of an
 * outer run is taken out of LD_PRELOAD: the inner run's is the one that records.
 */
#include <stdint.h>
#include <sys/types.h>

#include "collector/forward.h"

/* Room for the value of MEMTRACK_RUN. */
#define MT_LAUNCH_RUN_BYTES 192

/* Where execvp(3) looks without PATH. */
#define MT_LAUNCH_PATH "/bin:/usr/bin"

struct mt_launch {
	pid_t tgid;
	int gate;   /* closed: the child ends */
	int report; /* of a failed exec: an errno; end of file: it runs */
};

/* Who the command is to be: the invoking user of sudo, or as we are. */
struct mt_user {
	int change; /* 0: as we are */
	uid_t uid;
	gid_t gid;
};

void mt_launch_user(struct mt_user *ret);

/* For a program of our own: what LD_PRELOAD and LD_LIBRARY_PATH have is for the command; an outer
 * run's shim stays. */
int mt_launch_own_libraries(void);

/* Whether there is such a command, where execvp(3) looks: known before anything of a run is made.
 * 0 is no promise: some of what is found can not be executed.  lacking: a script's interpreter, if
 * it is that; the caller's to free, or NULL. */
int mt_launch_look(const char *name, char **lacking);

int mt_launch_fork(char **command, const struct mt_user *user, const struct mt_forward *forward,
		   struct mt_launch *ret);

/* shim: the library, as LD_PRELOAD is to name it; run: the value of MEMTRACK_RUN. */
int mt_launch_go(struct mt_launch *launch, const char *shim, const char *run);
void mt_launch_cancel(struct mt_launch *launch);
