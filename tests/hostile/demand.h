/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * demand.h - what a hostile program requires of its surroundings
 *
 * Contract
 *   Errors:    a demand that is not met is said on standard error, with errno as it was,
 *              and ends the process with status 99
 *   Threads:   any thread and signal handler
 *   Bounds:    never allocates
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define DEMAND_STATUS 99

__attribute__((noreturn, unused)) static void demand_failed(const char *file, int line,
							    const char *text, int error)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s (errno %d)\n", file, line, text, error);
	_exit(DEMAND_STATUS);
}

#define demand(condition) \
	((condition) ? (void)0 : demand_failed(__FILE__, __LINE__, #condition, errno))
