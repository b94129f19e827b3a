/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_reader.c - no file makes the reader crash, or break what its callbacks may rely on
 *
 * An input is a file; if its first byte is 'R', the rest are records that are put into a
 * good frame, so that the checksums do not keep the engine out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/reader.h"
#include "artifact/weight.h"
#include "artifact/writer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sample_artifact.h"
#include "wire/stack_delta.h"

/* What the callbacks were given so far. */
struct seen {
	uint32_t headers, modules, nodes, processes, threads, mappings, footers;
	uint64_t mapped_end; /* of the last mappings */
	size_t bytes;	     /* touched, so that memory checkers see them */
};

static void must(int good)
{
	if (!good)
		abort();
}

static int see_header(void *ctx, const struct mt_header *header)
{
	struct seen *seen = ctx;

	must(!seen->headers++);
	seen->bytes += strlen(header->machine) + strlen(header->program);
	for (const char *const *arg = header->argv; *arg; arg++)
		seen->bytes += strlen(*arg);
	return 0;
}

static int see_module(void *ctx, const struct mt_module *module)
{
	struct seen *seen = ctx;

	must(seen->headers && module->id == seen->modules++);
	seen->bytes += strlen(module->path);
	for (uint32_t i = 0; i < module->build_id_bytes; i++)
		seen->bytes += module->build_id[i];
	return 0;
}

static int see_symbols(void *ctx, const struct mt_module_symbols *symbols)
{
	struct seen *seen = ctx;

	must(symbols->module < seen->modules && symbols->len <= MT_SYMBOLS_LEN);
	for (uint32_t i = 0; i < symbols->len; i++)
		seen->bytes += strlen(symbols->symbols[i].name);
	return 0;
}

static int see_node(void *ctx, const struct mt_node *node)
{
	struct seen *seen = ctx;

	must(seen->headers && node->id == MT_NODE_FIRST + seen->nodes++);
	must(node->parent < node->id && node->exact <= 1);
	must(node->module == UINT32_MAX || node->module < seen->modules);
	return 0;
}

static int see_process(void *ctx, const struct mt_process *process)
{
	struct seen *seen = ctx;

	must(seen->headers && process->id == ++seen->processes && process->parent < process->id);
	seen->bytes += strlen(process->exe) + strlen(process->name);
	return 0;
}

static int see_process_end(void *ctx, const struct mt_process_end *end)
{
	struct seen *seen = ctx;

	must(end->id && end->id <= seen->processes);
	return 0;
}

static int see_thread(void *ctx, const struct mt_thread_info *thread)
{
	struct seen *seen = ctx;

	must(thread->id && thread->id <= seen->threads + 1);
	must(thread->process && thread->process <= seen->processes);
	if (thread->id > seen->threads)
		seen->threads++;
	seen->bytes += strlen(thread->name);
	return 0;
}

static int see_not_tracked(void *ctx, const struct mt_not_tracked *what)
{
	struct seen *seen = ctx;

	must(seen->headers);
	seen->bytes += strlen(what->what) + strlen(what->reason);
	return 0;
}

static int see_mappings(void *ctx, const struct mt_mappings *mappings)
{
	struct seen *seen = ctx;

	must(mappings->len <= MT_MAPPINGS_LEN);
	if (mappings->id == seen->mappings) {
		seen->mappings++;
		seen->mapped_end = 0;
	}
	must(mappings->id + 1 == seen->mappings);
	for (uint32_t i = 0; i < mappings->len; i++) {
		const struct mt_mapping *mapping = &mappings->mappings[i];

		must(mapping->start >= seen->mapped_end && mapping->start < mapping->end);
		must(mapping->module < seen->modules);
		seen->mapped_end = mapping->end;
	}
	return 0;
}

static int see_kept_stack(void *ctx, const struct mt_kept_stack *stack)
{
	struct seen *seen = ctx;

	must(stack->thread && stack->thread <= seen->threads);
	must(stack->node < MT_NODE_FIRST + seen->nodes && stack->mappings < seen->mappings);
	must(mt_window_valid(stack->start, stack->end, MT_BUDGET_MAX_BYTES));
	for (uint64_t i = 0; i < (stack->end - stack->start) / 8; i++)
		seen->bytes += stack->words[i];
	seen->mapped_end = UINT64_MAX;
	return 0;
}

static int see_event(void *ctx, const struct mt_event *event)
{
	struct seen *seen = ctx;

	must(event->type > MT_EVENT_NONE && event->type < _MT_EVENT_MAX);
	must(event->thread && event->thread <= seen->threads);
	must(event->node < MT_NODE_FIRST + seen->nodes);
	return 0;
}

static int see_footer(void *ctx, const struct mt_footer *footer)
{
	struct seen *seen = ctx;

	must(seen->headers && !seen->footers++);
	return 0;
}

static void read_file(const uint8_t *bytes, size_t len)
{
	static const struct mt_reader_callbacks callbacks = {
		.header = see_header,
		.module = see_module,
		.symbols = see_symbols,
		.node = see_node,
		.process = see_process,
		.process_end = see_process_end,
		.thread = see_thread,
		.not_tracked = see_not_tracked,
		.mappings = see_mappings,
		.kept_stack = see_kept_stack,
		.event = see_event,
		.footer = see_footer,
	};
	struct mt_reader_result result;
	struct seen seen = { 0 };
	int fd = artifact_fd(bytes, len);
	int r = mt_reader_read(fd, &callbacks, &seen, &result);

	close(fd);
	must(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
	must((r == 0) == (seen.headers == 1));
	must(result.complete == (int)seen.footers);
	must(result.complete || r == -EPROTONOSUPPORT || result.problem[0]);
	must(result.good_bytes <= result.file_bytes && result.file_bytes == len);
	must(memchr(result.problem, 0, sizeof(result.problem)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct artifact_bytes file = { NULL, 0 };

	if (!len || bytes[0] != 'R') {
		read_file(bytes, len);
		return 0;
	}
	artifact_append_frame(&file, bytes + 1, len - 1);
	read_file(file.bytes, file.len);
	free(file.bytes);
	return 0;
}

/* Values that a length, an id or a count is attacked with. */
static const struct {
	const char *bytes;
	size_t len;
} attacks[] = {
	{ "\xc0", 1 },
	{ "\xc1", 1 },
	{ "\xff", 1 },
	{ "\x00", 1 },
	{ "\xdd\xff\xff\xff\xff", 5 },
	{ "\xdf\xff\xff\xff\xff", 5 },
	{ "\xdb\xff\xff\xff\xff", 5 },
	{ "\xc6\xff\xff\xff\xff", 5 },
	{ "\xc9\xff\xff\xff\xff\x05", 6 },
	{ "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
	{ "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9 },
	{ "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 9 },
	{ "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91", 10 },
	{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
};

#define N_ATTACKS (sizeof(attacks) / sizeof(attacks[0]))

/* All truncations of a good input, and some bit flipped and some attack made at each byte. */
static void run_around(uint8_t *bytes, size_t len, unsigned int mixtures)
{
	uint8_t *copy = malloc(len + 16);

	must(copy != NULL);
	for (size_t i = 0; i <= len; i++)
		fuzz_try(bytes, i);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= (uint8_t)(1u << i % 8);
		fuzz_try(bytes, len);
		bytes[i] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t i = 0; i < 3 * len; i++) {
		memcpy(copy, bytes, len);
		memcpy(copy + i / 3, attacks[i % N_ATTACKS].bytes, attacks[i % N_ATTACKS].len);
		fuzz_try(copy, len);
	}
	free(copy);
	fuzz_try_mixed(bytes, len, mixtures);
}

/* A file of a clock that stands still: it is filled up. */
static void run_around_filling(void)
{
	const struct mt_header header = { .program = "fuzz" };
	const struct mt_event event = { .type = MT_EVENT_ALLOC, .thread = 1, .address = 16 };
	int fd = artifact_fd("", 0);
	struct artifact_bytes file;
	struct mt_writer *writer;

	must(mt_writer_new(dup(fd), &header, &writer) == 0);
	must(mt_writer_process(writer, &(struct mt_process){ .id = 1 }) == 0);
	must(mt_writer_thread(writer, &(struct mt_thread_info){ .id = 1, .process = 1 }) == 0);
	for (int i = 0; i < 20000; i++)
		must(mt_writer_event(writer, &event) == 0);
	must(mt_writer_finish(writer, &(struct mt_footer){ .events = 20000 }) == 0);
	mt_writer_free(writer);
	file = artifact_of_fd(fd);
	close(fd);
	must(file.len > 20000 * MT_WEIGHT_ROW / MT_WEIGHT_PER_BYTE);
	fuzz_try(file.bytes, file.len);
	fuzz_try_mixed(file.bytes, file.len, 500);
	free(file.bytes);
}

void fuzz_corpus(void)
{
	char *text;
	struct artifact_bytes file = sample_artifact(&text), records = { NULL, 0 }, content;

	content = artifact_content(file);
	artifact_append(&records, "R", 1);
	artifact_append(&records, content.bytes, content.len);
	run_around(file.bytes, file.len, 2000);
	run_around(records.bytes, records.len, 10000);
	run_around_filling();
	free(text);
	free(file.bytes);
	free(content.bytes);
	free(records.bytes);
}
