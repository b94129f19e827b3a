/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * pidfd.h - a process by a descriptor, which stays its own when its number is used again
 *
 * Contract
 *   Ownership: a descriptor is the caller's, close-on-exec.
 *   Errors:    negative errno of pidfd_open(2) and pidfd_send_signal(2), which the C library
 *              does not have before 2.36.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

static inline int mt_pidfd_open(uint32_t tgid)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)tgid, 0);

	return fd < 0 ? mt_neg_errno() : fd;
}

static inline int mt_pidfd_send(int pidfd, int signo, unsigned int flags)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, flags) < 0)
		return mt_neg_errno();
	return 0;
}
