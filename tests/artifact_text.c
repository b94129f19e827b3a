/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * artifact_text.c - see artifact_text.h
 */
#include "tests/artifact_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static void put_bytes(FILE *file, const char *text)
{
	for (; *text; text++)
		if (isgraph((unsigned char)*text) && *text != '%' && *text != '#')
			putc(*text, file);
		else
			fprintf(file, "%%%02x", (unsigned char)*text);
}

static void put_text(FILE *file, const char *key, const char *text)
{
	fprintf(file, " %s=", key);
	put_bytes(file, text);
}

static int put_header(void *ctx, const struct mt_header *header)
{
	FILE *file = ctx;

	fprintf(file,
		"header start=%" PRIu64 " wall=%" PRIu64 " capture=%" PRIu32 " budget=%" PRIu32,
		header->start_ns, header->wall_ns, header->capture, header->budget_bytes);
	put_text(file, "machine", header->machine);
	put_text(file, "program", header->program);
	for (const char *const *arg = header->argv; *arg; arg++)
		put_text(file, "argv", *arg);
	putc('\n', file);
	return 0;
}

static int put_module(void *ctx, const struct mt_module *module)
{
	FILE *file = ctx;

	fprintf(file, "module id=%" PRIu32 " flags=%" PRIu32, module->id, module->flags);
	put_text(file, "path", module->path);
	fprintf(file, " build_id=");
	for (uint32_t i = 0; i < module->build_id_bytes; i++)
		fprintf(file, "%02x", module->build_id[i]);
	putc('\n', file);
	return 0;
}

static int put_symbols(void *ctx, const struct mt_module_symbols *symbols)
{
	FILE *file = ctx;

	fprintf(file, "symbols module=%" PRIu32 " left_out=%" PRIu64, symbols->module,
		symbols->left_out);
	for (uint32_t i = 0; i < symbols->len; i++) {
		const struct mt_symbol *symbol = &symbols->symbols[i];

		fprintf(file, " symbol=0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu32 ",", symbol->offset,
			symbol->bytes, symbol->info);
		put_bytes(file, symbol->name);
	}
	putc('\n', file);
	return 0;
}

static int put_node(void *ctx, const struct mt_node *node)
{
	FILE *file = ctx;

	fprintf(file, "node id=%" PRIu32 " parent=%" PRIu32, node->id, node->parent);
	if (node->module == UINT32_MAX)
		fprintf(file, " module=-");
	else
		fprintf(file, " module=%" PRIu32, node->module);
	fprintf(file, " offset=0x%" PRIx64 " exact=%d\n", node->offset, node->exact);
	return 0;
}

static int put_process(void *ctx, const struct mt_process *process)
{
	FILE *file = ctx;

	fprintf(file,
		"process id=%" PRIu32 " parent=%" PRIu32 " tgid=%" PRIu32 " how=%" PRIu32
		" start=%" PRIu64,
		process->id, process->parent, process->tgid, process->how, process->start_ns);
	put_text(file, "exe", process->exe);
	put_text(file, "name", process->name);
	putc('\n', file);
	return 0;
}

static int put_process_end(void *ctx, const struct mt_process_end *end)
{
	FILE *file = ctx;

	fprintf(file, "process-end id=%" PRIu32 " end=%" PRIu64 " status=%" PRId32 "\n", end->id,
		end->end_ns, end->status);
	return 0;
}

static int put_thread(void *ctx, const struct mt_thread_info *thread)
{
	FILE *file = ctx;

	fprintf(file, "thread id=%" PRIu32 " process=%" PRIu32 " tid=%" PRIu32 " start=%" PRIu64,
		thread->id, thread->process, thread->tid, thread->start_ns);
	put_text(file, "name", thread->name);
	putc('\n', file);
	return 0;
}

static int put_not_tracked(void *ctx, const struct mt_not_tracked *what)
{
	FILE *file = ctx;

	fprintf(file, "not-tracked tgid=%" PRIu32, what->tgid);
	put_text(file, "what", what->what);
	put_text(file, "reason", what->reason);
	putc('\n', file);
	return 0;
}

static int put_mappings(void *ctx, const struct mt_mappings *mappings)
{
	FILE *file = ctx;

	fprintf(file, "mappings id=%" PRIu32, mappings->id);
	for (uint32_t i = 0; i < mappings->len; i++) {
		const struct mt_mapping *mapping = &mappings->mappings[i];

		fprintf(file, " map=0x%" PRIx64 ",0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu32 ",%" PRIu32,
			mapping->start, mapping->end, mapping->bias, mapping->module,
			mapping->flags);
	}
	putc('\n', file);
	return 0;
}

static int put_kept_stack(void *ctx, const struct mt_kept_stack *stack)
{
	FILE *file = ctx;

	fprintf(file,
		"kept-stack thread=%" PRIu32 " node=%" PRIu32 " mappings=%" PRIu32 " flags=%" PRIu32
		" start=0x%" PRIx64 " epoch=%" PRIu32 " digest=0x%" PRIx64 " words=",
		stack->thread, stack->node, stack->mappings, stack->flags, stack->start,
		stack->epoch, stack->digest);
	for (size_t i = 0; i < (stack->end - stack->start) / 8; i++)
		fprintf(file, "%s0x%" PRIx64, i ? "," : "", stack->words[i]);
	putc('\n', file);
	return 0;
}

static int put_event(void *ctx, const struct mt_event *event)
{
	static const char *const kinds[_MT_EVENT_MAX] = {
		[MT_EVENT_ALLOC] = "alloc",
		[MT_EVENT_FREE] = "free",
		[MT_EVENT_REALLOC_BEGIN] = "realloc-begin",
		[MT_EVENT_REALLOC_END] = "realloc-end",
		[MT_EVENT_REALLOC_FAILED] = "realloc-failed",
		[MT_EVENT_REALLOC_FREED] = "realloc-freed",
	};
	FILE *file = ctx;

	fprintf(file,
		"%s time=%" PRIu64 " thread=%" PRIu32 " node=%" PRIu32 " address=0x%" PRIx64
		" size=%" PRIu64 " function=%d\n",
		kinds[event->type], event->time_ns, event->thread, event->node, event->address,
		event->size, event->function);
	return 0;
}

static int put_footer(void *ctx, const struct mt_footer *footer)
{
	FILE *file = ctx;

	fprintf(file,
		"footer end=%" PRIu64 " status=%" PRId32 " events=%" PRIu64 " lost_events=%" PRIu64
		" lost_stacks=%" PRIu64 "\n",
		footer->end_ns, footer->status, footer->events, footer->lost_events,
		footer->lost_stacks);
	return 0;
}

const struct mt_reader_callbacks mt_artifact_text = {
	.header = put_header,
	.module = put_module,
	.symbols = put_symbols,
	.node = put_node,
	.process = put_process,
	.process_end = put_process_end,
	.thread = put_thread,
	.not_tracked = put_not_tracked,
	.mappings = put_mappings,
	.kept_stack = put_kept_stack,
	.event = put_event,
	.footer = put_footer,
};
