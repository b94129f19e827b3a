/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * run.h - an artifact in, all that a report is made of out: what it says, and the replay
 *
 * Contract
 *   Input:     any file; artifact/reader.h says what is checked.
 *   Ownership: fd stays the caller's; what the struct points to is its own until
 *              mt_run_done().  Strings are as the target had them: any bytes.
 *   Errors:    as of mt_reader_read(), and run->result is set where it says so; -EPROTO:
 *              records that contradict each other (report/replay.h).  After an error only
 *              mt_run_done().
 *   Bounds:    as of replay.h, and what the artifact says of modules, nodes, processes and
 *              threads.
 */
#include "artifact/format.h"
#include "artifact/reader.h"
#include "report/replay.h"

struct mt_run_module {
	char *path;
	uint8_t *build_id;
	uint32_t build_id_bytes;
	uint32_t flags;
	struct mt_symbol *symbols; /* as recorded; their names are the run's */
	size_t symbols_len, symbols_room;
	uint64_t symbols_left_out;
};

/* Ids below MT_NODE_FIRST are roots: they have no frame, stop is their own id. */
struct mt_run_node {
	uint64_t offset;
	uint32_t parent;
	uint32_t module;
	uint8_t exact;
	uint8_t stop; /* enum mt_stop: how the chain ends */
};

struct mt_run_process {
	char *exe;
	char *name;
	uint32_t parent;
	uint32_t tgid;
	uint32_t how;
	uint64_t start_ns;
	uint64_t end_ns;
	int32_t status; /* as wait(2) gives it; -1: not known */
	int ended;
};

struct mt_run_thread {
	char *name;
	uint32_t process;
	uint32_t tid;
	uint64_t start_ns;
};

struct mt_run_not_tracked {
	char *what;
	char *reason;
	uint32_t tgid;
};

struct mt_run {
	uint64_t start_ns;
	uint64_t wall_ns;
	uint32_t capture;
	uint32_t budget_bytes;
	char *machine;
	char *program;
	char **argv;
	size_t argc;

	struct mt_run_module *modules;
	size_t modules_len, modules_room;
	struct mt_run_node *nodes;
	size_t nodes_len, nodes_room;
	struct mt_run_process *processes; /* [0] is nobody */
	size_t processes_len, processes_room;
	struct mt_run_thread *threads; /* [0] is nobody */
	size_t threads_len, threads_room;
	struct mt_run_not_tracked *not_tracked;
	size_t not_tracked_len, not_tracked_room;

	struct mt_footer footer; /* if result.complete */
	struct mt_reader_result result;
	struct mt_replay replay;
	uint64_t stops[_MT_STOP_MAX]; /* allocations by the way their chain ends */
};

int mt_run_init(struct mt_run *run);
void mt_run_done(struct mt_run *run);

/* Once. */
int mt_run_read(struct mt_run *run, int fd);

/* From the run's start to its end, or to the last event if the end is not there. */
uint64_t mt_run_duration_ns(const struct mt_run *run);

/* From the run's start; 0 for what was before. */
uint64_t mt_run_since_start(const struct mt_run *run, uint64_t time_ns);

/* Allocations whose chain is not whole. */
uint64_t mt_run_unresolved(const struct mt_run *run);

/* "end", "truncated", ...; never NULL. */
const char *mt_run_stop_name(uint32_t stop);

/* "malloc", "_Znwm", ...: what a number in replay.calls means; NULL: not known. */
const char *mt_run_function_symbol(uint8_t function);
