/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run.c - see run.h
 *
 * Invariants
 *   The arrays here and those of the replay have the same ids: each record is declared to
 *   both, and one that would not be the next is refused.
 *   A node's parent is a smaller id, so that a walk to the root ends.
 */
#include "report/run.h"

#include <string.h>

#include "report/grow.h"
#include "wire/functions.h"

static const char *const stop_names[] = {
	[MT_STOP_NONE] = "none",	   [MT_STOP_END] = "end",
	[MT_STOP_TRUNCATED] = "truncated", [MT_STOP_NO_CFI] = "no-cfi",
	[MT_STOP_NO_MODULE] = "no-module", [MT_STOP_BAD] = "bad",
	[MT_STOP_DEPTH] = "depth",	   [MT_STOP_BOOTSTRAP] = "bootstrap",
	[MT_STOP_LOST] = "lost",
};

_Static_assert(sizeof(stop_names) / sizeof(stop_names[0]) == _MT_STOP_MAX, "a stop has no name");

const char *mt_run_stop_name(uint32_t stop)
{
	return stop < _MT_STOP_MAX ? stop_names[stop] : "unknown";
}

const char *mt_run_function_symbol(uint8_t function)
{
	static const char *const symbols[] = {
#define SYMBOL(number, symbol, handler) [number] = #symbol,
		MT_FUNCTIONS(SYMBOL)
#undef SYMBOL
	};

	return function < sizeof(symbols) / sizeof(symbols[0]) ? symbols[function] : NULL;
}

static int copy_string(const char *string, char **ret)
{
	char *copy = strdup(string ? string : "");

	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static int on_header(void *ctx, const struct mt_header *header)
{
	struct mt_run *run = ctx;
	size_t argc = 0;
	int err;

	if (run->argv)
		return -EPROTO;
	run->start_ns = header->start_ns;
	run->wall_ns = header->wall_ns;
	run->capture = header->capture;
	run->budget_bytes = header->budget_bytes;
	err = copy_string(header->machine, &run->machine);
	if (!err)
		err = copy_string(header->program, &run->program);
	if (err)
		return err;
	while (header->argv && header->argv[argc])
		argc++;
	run->argv = calloc(argc + 1, sizeof(*run->argv));
	if (!run->argv)
		return -ENOMEM;
	for (; run->argc < argc; run->argc++) {
		err = copy_string(header->argv[run->argc], &run->argv[run->argc]);
		if (err)
			return err;
	}
	return 0;
}

static int on_module(void *ctx, const struct mt_module *module)
{
	struct mt_run *run = ctx;
	struct mt_run_module *mine;
	int err;

	if (module->id != run->modules_len)
		return -EPROTO;
	err = mt_grow(&run->modules, &run->modules_room, run->modules_len + 1,
		      sizeof(*run->modules));
	if (err)
		return err;
	mine = &run->modules[run->modules_len++];
	mine->flags = module->flags;
	if (module->build_id_bytes) {
		mine->build_id = malloc(module->build_id_bytes);
		if (!mine->build_id)
			return -ENOMEM;
		memcpy(mine->build_id, module->build_id, module->build_id_bytes);
		mine->build_id_bytes = module->build_id_bytes;
	}
	return copy_string(module->path, &mine->path);
}

static int on_symbols(void *ctx, const struct mt_module_symbols *symbols)
{
	struct mt_run *run = ctx;
	struct mt_run_module *mine;
	int err;

	if (symbols->module >= run->modules_len)
		return -EPROTO;
	mine = &run->modules[symbols->module];
	if (symbols->left_out > mine->symbols_left_out)
		mine->symbols_left_out = symbols->left_out;
	err = mt_grow(&mine->symbols, &mine->symbols_room, mine->symbols_len + symbols->len,
		      sizeof(*mine->symbols));
	for (uint32_t i = 0; i < symbols->len && !err; i++) {
		struct mt_symbol copy = symbols->symbols[i];

		copy.name = strdup(copy.name);
		if (!copy.name)
			return -ENOMEM;
		mine->symbols[mine->symbols_len++] = copy;
	}
	return err;
}

static int on_node(void *ctx, const struct mt_node *node)
{
	struct mt_run *run = ctx;
	struct mt_run_node *mine;
	int err;

	if (node->id != run->nodes_len || node->parent >= node->id ||
	    (node->module != UINT32_MAX && node->module >= run->modules_len))
		return -EPROTO;
	err = mt_grow(&run->nodes, &run->nodes_room, run->nodes_len + 1, sizeof(*run->nodes));
	if (err)
		return err;
	mine = &run->nodes[run->nodes_len++];
	mine->offset = node->offset;
	mine->parent = node->parent;
	mine->module = node->module;
	mine->exact = node->exact;
	mine->stop = run->nodes[node->parent].stop;
	return mt_replay_node(&run->replay, node->id);
}

static int on_process(void *ctx, const struct mt_process *process)
{
	struct mt_run *run = ctx;
	struct mt_run_process *mine;
	int err;

	if (!process->id || process->id > run->processes_len)
		return -EPROTO;
	if (process->id == run->processes_len) {
		err = mt_grow(&run->processes, &run->processes_room, run->processes_len + 1,
			      sizeof(*run->processes));
		if (err)
			return err;
		run->processes_len++;
	}
	mine = &run->processes[process->id];
	mine->parent = process->parent;
	mine->tgid = process->tgid;
	mine->how = process->how;
	mine->start_ns = process->start_ns;
	mine->status = -1;
	err = copy_string(process->exe, &mine->exe);
	if (!err)
		err = copy_string(process->name, &mine->name);
	return err ? err : mt_replay_process(&run->replay, process->id);
}

static int on_process_end(void *ctx, const struct mt_process_end *end)
{
	struct mt_run *run = ctx;

	if (!end->id || end->id >= run->processes_len)
		return -EPROTO;
	run->processes[end->id].ended = 1;
	run->processes[end->id].end_ns = end->end_ns;
	run->processes[end->id].status = end->status;
	return mt_replay_process_end(&run->replay, end->id);
}

static int on_thread(void *ctx, const struct mt_thread_info *thread)
{
	struct mt_run *run = ctx;
	struct mt_run_thread *mine;
	int err;

	if (!thread->id || thread->id > run->threads_len)
		return -EPROTO;
	if (thread->id == run->threads_len) {
		err = mt_grow(&run->threads, &run->threads_room, run->threads_len + 1,
			      sizeof(*run->threads));
		if (err)
			return err;
		run->threads_len++;
	}
	mine = &run->threads[thread->id];
	mine->process = thread->process;
	mine->tid = thread->tid;
	mine->start_ns = thread->start_ns;
	err = copy_string(thread->name, &mine->name);
	return err ? err : mt_replay_thread(&run->replay, thread->id, thread->process);
}

static int on_not_tracked(void *ctx, const struct mt_not_tracked *what)
{
	struct mt_run *run = ctx;
	struct mt_run_not_tracked *mine;
	int err;

	err = mt_grow(&run->not_tracked, &run->not_tracked_room, run->not_tracked_len + 1,
		      sizeof(*run->not_tracked));
	if (err)
		return err;
	mine = &run->not_tracked[run->not_tracked_len++];
	mine->tgid = what->tgid;
	err = copy_string(what->what, &mine->what);
	return err ? err : copy_string(what->reason, &mine->reason);
}

static int on_event(void *ctx, const struct mt_event *event)
{
	struct mt_run *run = ctx;

	return mt_replay_event(&run->replay, event);
}

static int on_footer(void *ctx, const struct mt_footer *footer)
{
	struct mt_run *run = ctx;

	run->footer = *footer;
	return 0;
}

int mt_run_init(struct mt_run *run)
{
	int err;

	*run = (struct mt_run){ 0 };
	err = mt_replay_init(&run->replay);
	if (err)
		return err;
	if (mt_grow(&run->nodes, &run->nodes_room, MT_NODE_FIRST, sizeof(*run->nodes)) ||
	    mt_grow(&run->processes, &run->processes_room, 1, sizeof(*run->processes)) ||
	    mt_grow(&run->threads, &run->threads_room, 1, sizeof(*run->threads))) {
		mt_run_done(run);
		return -ENOMEM;
	}
	run->processes_len = 1;
	run->threads_len = 1;
	for (uint8_t i = 0; i < MT_NODE_FIRST; i++)
		run->nodes[i] = (struct mt_run_node){ .module = UINT32_MAX, .stop = i };
	run->nodes_len = MT_NODE_FIRST;
	return 0;
}

static void module_done(struct mt_run_module *module)
{
	for (size_t i = 0; i < module->symbols_len; i++)
		free((char *)module->symbols[i].name);
	free(module->symbols);
	free(module->path);
	free(module->build_id);
}

void mt_run_done(struct mt_run *run)
{
	free(run->machine);
	free(run->program);
	for (size_t i = 0; i < run->argc; i++)
		free(run->argv[i]);
	free(run->argv);
	for (size_t i = 0; i < run->modules_len; i++)
		module_done(&run->modules[i]);
	free(run->modules);
	free(run->nodes);
	for (size_t i = 0; i < run->processes_len; i++) {
		free(run->processes[i].exe);
		free(run->processes[i].name);
	}
	free(run->processes);
	for (size_t i = 0; i < run->threads_len; i++)
		free(run->threads[i].name);
	free(run->threads);
	for (size_t i = 0; i < run->not_tracked_len; i++) {
		free(run->not_tracked[i].what);
		free(run->not_tracked[i].reason);
	}
	free(run->not_tracked);
	mt_replay_done(&run->replay);
	*run = (struct mt_run){ 0 };
}

int mt_run_read(struct mt_run *run, int fd)
{
	static const struct mt_reader_callbacks callbacks = {
		.header = on_header,
		.module = on_module,
		.symbols = on_symbols,
		.node = on_node,
		.process = on_process,
		.process_end = on_process_end,
		.thread = on_thread,
		.not_tracked = on_not_tracked,
		.event = on_event,
		.footer = on_footer,
	};
	int err = mt_reader_read(fd, &callbacks, run, &run->result);

	if (err)
		return err;
	mt_replay_finish(&run->replay);
	for (size_t i = 1; i < run->replay.chains_len; i++) {
		const struct mt_replay_chain *chain = &run->replay.chains[i];
		uint8_t stop = run->nodes[chain->node].stop;

		/* A reason of a later version: not one of ours, and not END. */
		if (stop >= _MT_STOP_MAX)
			stop = MT_STOP_NONE;
		run->stops[stop] += chain->figures.allocations;
	}
	return 0;
}

uint64_t mt_run_since_start(const struct mt_run *run, uint64_t time_ns)
{
	return time_ns > run->start_ns ? time_ns - run->start_ns : 0;
}

uint64_t mt_run_duration_ns(const struct mt_run *run)
{
	return mt_run_since_start(run,
				  run->result.complete ? run->footer.end_ns : run->replay.last_ns);
}

uint64_t mt_run_unresolved(const struct mt_run *run)
{
	uint64_t sum = 0;

	for (uint32_t stop = 0; stop < _MT_STOP_MAX; stop++)
		if (stop != MT_STOP_END)
			sum += run->stops[stop];
	return sum;
}
