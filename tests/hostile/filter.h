/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * filter.h - a process gives up system calls for good
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "tests/hostile/demand.h"

/* rules: n of them, for the calling thread and those that it starts. */
static void filter_by(struct sock_filter *rules, size_t n)
{
	struct sock_fprog program = { n, rules };

	demand(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	demand(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}
