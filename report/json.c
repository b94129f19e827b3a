/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json.c - see json.h
 */
#include "report/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "report/demangle.h"
#include "report/json_writer.h"
#include "wire/control.h"

/* What the footer says is not known without one. */
static void put_footer_number(struct mt_json *json, const struct mt_run *run, const char *key,
			      uint64_t value)
{
	if (run->result.complete)
		mt_json_number(json, key, value);
	else
		mt_json_null(json, key);
}

static const char *capture_name(uint32_t capture)
{
	return capture == MT_CAPTURE_EBPF     ? "ebpf"
	       : capture == MT_CAPTURE_INLINE ? "inline"
					      : "unknown";
}

static void put_totals(struct mt_json *json, const struct mt_run *run)
{
	const struct mt_figures *total = &run->replay.total;

	mt_json_number(json, "allocations", total->allocations);
	mt_json_number(json, "frees", total->frees);
	mt_json_number(json, "bytes_allocated", total->bytes_allocated);
	mt_json_number(json, "peak_bytes", run->replay.peak.bytes);
	mt_json_number(json, "peak_time_ns", mt_run_since_start(run, run->replay.peak.time_ns));
	mt_json_number(json, "live_allocations", total->left_allocations);
	mt_json_number(json, "live_bytes", total->left_bytes);
	mt_json_number(json, "temporary_allocations", total->temporary_allocations);
	mt_json_number(json, "threads", run->threads_len - 1);
	mt_json_number(json, "processes", run->processes_len - 1);
	put_footer_number(json, run, "lost_events", run->footer.lost_events);
	put_footer_number(json, run, "lost_stacks", run->footer.lost_stacks);
	mt_json_number(json, "unresolved_chains", mt_run_unresolved(run));
	mt_json_string(json, "capture", capture_name(run->capture));
}

/* Exit status and signal of a status of wait(2). */
static void put_status(struct mt_json *json, int32_t status)
{
	if (status >= 0 && WIFEXITED(status))
		mt_json_number(json, "exit_status", (uint64_t)WEXITSTATUS(status));
	else
		mt_json_null(json, "exit_status");
	if (status >= 0 && WIFSIGNALED(status))
		mt_json_number(json, "exit_signal", (uint64_t)WTERMSIG(status));
	else
		mt_json_null(json, "exit_signal");
}

static int put_calls(struct mt_json *json, const struct mt_run *run)
{
	mt_json_open_flat(json, "calls", '{');
	for (unsigned int i = 0; i <= UINT8_MAX; i++) {
		const char *symbol = mt_run_function_symbol((uint8_t)i);
		mt_cleanup(mt_freep) char *name = NULL;

		if (!run->replay.calls[i])
			continue;
		if (symbol)
			name = mt_demangle(symbol);
		else if (asprintf(&name, "function %u", i) < 0)
			name = NULL;
		if (!name)
			return -ENOMEM;
		mt_json_number(json, name, run->replay.calls[i]);
	}
	mt_json_close(json);
	return 0;
}

static int put_run(struct mt_json *json, const struct mt_run *run)
{
	int err;

	mt_json_bool(json, "complete", run->result.complete);
	mt_json_string(json, "problem", run->result.problem[0] ? run->result.problem : NULL);
	mt_json_open_flat(json, "command", '[');
	for (size_t i = 0; i < run->argc; i++)
		mt_json_string(json, NULL, run->argv[i]);
	mt_json_close(json);
	put_status(json, run->result.complete ? run->footer.status : -1);
	mt_json_number(json, "duration_ns", mt_run_duration_ns(run));
	mt_json_number(json, "start_wall_ns", run->wall_ns);
	mt_json_string(json, "machine", run->machine);
	mt_json_string(json, "program", run->program);
	mt_json_number(json, "format_version", run->result.version);
	mt_json_number(json, "stack_size", run->budget_bytes);
	mt_json_number(json, "events", run->replay.events);
	mt_json_number(json, "untracked_frees", run->replay.untracked_frees);
	mt_json_number(json, "contradictions", run->replay.contradictions);
	err = put_calls(json, run);
	if (err)
		return err;
	mt_json_open_flat(json, "stops", '{');
	for (uint32_t stop = 0; stop < _MT_STOP_MAX; stop++)
		mt_json_number(json, mt_run_stop_name(stop), run->stops[stop]);
	mt_json_close(json);
	mt_json_open(json, "not_tracked", '[');
	for (size_t i = 0; i < run->not_tracked_len; i++) {
		mt_json_open_flat(json, NULL, '{');
		mt_json_number(json, "pid", run->not_tracked[i].tgid);
		mt_json_string(json, "what", run->not_tracked[i].what);
		mt_json_string(json, "reason", run->not_tracked[i].reason);
		mt_json_close(json);
	}
	mt_json_close(json);
	return 0;
}

static void put_frame(struct mt_json *json, const struct mt_run *run, uint32_t node,
		      const struct mt_frame *frame)
{
	const struct mt_run_node *mine = &run->nodes[node];

	mt_json_open_flat(json, NULL, '{');
	mt_json_string(json, "module",
		       mine->module == UINT32_MAX ? NULL : run->modules[mine->module].path);
	mt_json_number(json, "offset", mine->offset);
	mt_json_string(json, "function", frame->function);
	mt_json_string(json, "file", frame->file);
	if (frame->line)
		mt_json_number(json, "line", frame->line);
	else
		mt_json_null(json, "line");
	mt_json_bool(json, "inlined", frame->inlined);
	mt_json_close(json);
}

static int put_row(struct mt_json *json, const struct mt_view *view, const struct mt_rank_row *row)
{
	const struct mt_run *run = view->run;

	mt_json_open(json, NULL, '{');
	mt_json_number(json, "bytes", row->bytes);
	mt_json_number(json, "count", row->count);
	mt_json_open(json, "chain", '[');
	for (uint32_t node = row->node; node >= MT_NODE_FIRST; node = run->nodes[node].parent) {
		const struct mt_frames *frames;
		int err = mt_symbolizer_node(view->symbolizer, node, &frames);

		if (err)
			return err;
		for (size_t i = 0; i < frames->len; i++)
			put_frame(json, run, node, &frames->frames[i]);
	}
	mt_json_close(json);
	mt_json_string(json, "stop", mt_run_stop_name(run->nodes[row->node].stop));
	mt_json_close(json);
	return 0;
}

static int put_top(struct mt_json *json, const struct mt_view *view, const char *key,
		   enum mt_rank rank)
{
	mt_cleanup(mt_freep) struct mt_rank_row *rows = NULL;
	size_t len;
	int err = mt_rank_chains(&view->run->replay, rank, view->top, &rows, &len);

	if (err)
		return err;
	mt_json_open(json, key, '[');
	for (size_t i = 0; i < len && !err; i++)
		err = put_row(json, view, &rows[i]);
	mt_json_close(json);
	return err;
}

static int put_modules(struct mt_json *json, const struct mt_view *view)
{
	const struct mt_run *run = view->run;

	mt_json_open(json, "modules", '[');
	for (size_t i = 0; i < run->modules_len; i++) {
		const struct mt_run_module *module = &run->modules[i];
		mt_cleanup(mt_freep) char *hex = NULL;

		if (!mt_symbolizer_used(view->symbolizer, (uint32_t)i))
			continue;
		hex = calloc(2, (size_t)module->build_id_bytes + 1);
		if (!hex)
			return -ENOMEM;
		for (uint32_t at = 0; at < module->build_id_bytes; at++)
			snprintf(hex + 2 * (size_t)at, 3, "%02x", module->build_id[at]);
		mt_json_open_flat(json, NULL, '{');
		mt_json_string(json, "module", module->path);
		mt_json_string(json, "build_id", hex[0] ? hex : NULL);
		mt_json_string(json, "problem",
			       mt_symbolizer_problem(view->symbolizer, (uint32_t)i));
		mt_json_close(json);
	}
	mt_json_close(json);
	return 0;
}

static int put_chains(struct mt_json *json, const struct mt_view *view)
{
	static const char *const keys[] = {
		[MT_RANK_PEAK] = "top_peak",
		[MT_RANK_ALLOCATIONS] = "top_allocations",
		[MT_RANK_LEFT] = "top_live",
	};
	int err = 0;

	_Static_assert(sizeof(keys) / sizeof(keys[0]) == _MT_RANK_MAX, "a ranking has no key");
	for (unsigned int rank = 0; rank < _MT_RANK_MAX && !err; rank++)
		err = put_top(json, view, keys[rank], rank);
	return err ? err : put_modules(json, view);
}

static void put_sizes(struct mt_json *json, const struct mt_sizes *sizes)
{
	mt_json_open(json, "sizes", '[');
	for (size_t i = 0; i < sizes->len; i++) {
		mt_json_open_flat(json, NULL, '{');
		mt_json_number(json, "size", sizes->sizes[i].size);
		mt_json_number(json, "allocations", sizes->sizes[i].allocations);
		mt_json_number(json, "frees", sizes->sizes[i].frees);
		mt_json_number(json, "temporary_allocations",
			       sizes->sizes[i].temporary_allocations);
		mt_json_close(json);
	}
	mt_json_close(json);
}

static void put_figures(struct mt_json *json, const struct mt_figures *figures)
{
	mt_json_number(json, "allocations", figures->allocations);
	mt_json_number(json, "frees", figures->frees);
	mt_json_number(json, "bytes_allocated", figures->bytes_allocated);
	mt_json_number(json, "temporary_allocations", figures->temporary_allocations);
	mt_json_number(json, "live_allocations", figures->left_allocations);
	mt_json_number(json, "live_bytes", figures->left_bytes);
}

static void put_threads(struct mt_json *json, const struct mt_run *run)
{
	mt_json_open(json, "by_thread", '[');
	for (size_t i = 1; i < run->threads_len; i++) {
		const struct mt_run_thread *thread = &run->threads[i];

		mt_json_open_flat(json, NULL, '{');
		mt_json_number(json, "thread", i);
		mt_json_number(json, "tid", thread->tid);
		mt_json_number(json, "process", thread->process);
		mt_json_number(json, "pid", run->processes[thread->process].tgid);
		mt_json_string(json, "name", thread->name);
		mt_json_number(json, "start_ns", mt_run_since_start(run, thread->start_ns));
		put_figures(json, &run->replay.threads[i].figures);
		mt_json_close(json);
	}
	mt_json_close(json);
}

static void put_processes(struct mt_json *json, const struct mt_run *run)
{
	mt_json_open(json, "by_process", '[');
	for (size_t i = 1; i < run->processes_len; i++) {
		const struct mt_run_process *process = &run->processes[i];
		const struct mt_replay_process *replayed = &run->replay.processes[i];

		mt_json_open_flat(json, NULL, '{');
		mt_json_number(json, "process", i);
		mt_json_number(json, "pid", process->tgid);
		if (process->parent)
			mt_json_number(json, "parent", process->parent);
		else
			mt_json_null(json, "parent");
		mt_json_string(json, "name", process->name);
		mt_json_string(json, "exe", process->exe);
		mt_json_number(json, "start_ns", mt_run_since_start(run, process->start_ns));
		if (process->ended)
			mt_json_number(json, "end_ns", mt_run_since_start(run, process->end_ns));
		else
			mt_json_null(json, "end_ns");
		put_status(json, process->status);
		put_figures(json, &replayed->figures);
		mt_json_number(json, "peak_bytes", replayed->peak.bytes);
		mt_json_number(json, "peak_time_ns",
			       mt_run_since_start(run, replayed->peak.time_ns));
		mt_json_number(json, "run_peak_bytes", replayed->at_peak.bytes);
		mt_json_close(json);
	}
	mt_json_close(json);
}

int mt_json_report(const struct mt_view *view, FILE *out)
{
	const struct mt_run *run = view->run;
	struct mt_json json;
	int err;

	mt_json_init(&json, out);
	mt_json_open(&json, NULL, '{');
	put_totals(&json, run);
	err = put_run(&json, run);
	if (err)
		return err;
	switch (view->by) {
	case MT_VIEW_SIZE:
		put_sizes(&json, &run->replay.sizes);
		break;
	case MT_VIEW_THREAD:
		put_threads(&json, run);
		break;
	case MT_VIEW_PROCESS:
		put_processes(&json, run);
		break;
	default:
		err = put_chains(&json, view);
		break;
	}
	if (err)
		return err;
	mt_json_close(&json);
	return 0;
}
