/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * run_options.h - memtrack-run's command line
 *
 * Contract
 *   Input:     the command line and the environment; all that can be checked before anything is
 *              done is.
 *   Ownership: what is returned points into argv and the environment.
 *   Errors:    a line on standard error (collector/say.h).
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	MT_STATUS_LOST = 121,
	MT_STATUS_FAILED = 125,
	MT_STATUS_NOT_EXECUTABLE = 126,
	MT_STATUS_NOT_FOUND = 127
};

struct mt_run_options {
	const char *output;
	const char *stack_size;
	const char *capture;
	const char *stack_ring; /* NULL: the default */
	const char *event_ring;
	const char *drain_interval;
	const char *pause;
	const char *timeout; /* of an episode of pressure */
	const char *watermark;
	uint64_t timeout_ns;
	const char *stats;  /* NULL: none */
	const char *faults; /* on purpose, collector/faults.h; or NULL */
	bool raw_stacks;
	bool no_stacks;
	bool keep_stacks;
	bool no_learned_stacks;
	bool verbose;
	bool quiet;
	char **command;
};

/* Returns 0, or 1 + the exit status to end with, after help too. */
int mt_run_options_parse(int argc, char **argv, struct mt_run_options *ret);
