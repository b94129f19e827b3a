/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * collector_options.h - memtrack-collector's command line, which memtrack-run writes
 *
 *   memtrack-collector --channel=FD --output=FD --directory=PATH --shim=PATH
 *                      --stack-size=SIZE --capture=auto|ebpf|inline
 *                      [--stack-ring=SIZE] [--event-ring=SIZE] [--drain-interval=MS]
 *                      [--pause=futex|signal|never] [--pressure-watermark=PERCENT]
 *                      [--stats=FD] [--raw-stacks] [--no-stacks] [--keep-stacks]
 *                      [--no-learned-stacks]
 *                      [--inject-faults=KIND:N,...]
 *                      -- COMMAND ARGS...
 *
 * Contract
 *   Input:     as main() gets it.
 *   Ownership: strings stay those of the command line.
 *   Errors:    -EINVAL: an option or a value that is none, or one is missing.
 *   Threads:   one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "collector/capture_choice.h"

struct mt_collector_options {
	int channel;
	int output;
	int stats; /* -1: none */
	const char *directory;
	const char *shim; /* path of the copy that this run preloads */
	uint64_t stack_bytes;
	uint32_t stack_ring_bytes; /* 0: the default */
	uint32_t event_ring_bytes;
	uint32_t drain_interval_ms;
	uint32_t pause;		    /* MT_PAUSE_* */
	uint32_t watermark_percent; /* 0: the default */
	uint32_t run_flags;	    /* MT_RUN_* */
	const char *faults;	    /* collector/faults.h */
	enum mt_capture_choice capture;
	bool keep_stacks;
	bool no_learned_stacks;
	char **command;
};

int mt_collector_options_parse(int argc, char **argv, struct mt_collector_options *ret);
