/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * writer.c - see writer.h for the contract
 *
 * What has come since the last frame is in three places: body, records that are packed, and
 * the open block, rows of the tables nodes, infos and events that are encoded but not
 * packed, and kept, mappings and kept stacks, packed.  The rows come after the records that
 * body has, and what is in kept after the rows: windows that lie side by side, as they
 * resemble each other, are small when they are compressed.
 *
 * Invariants
 *   - Modules, symbols and threads are packed into body when they come: they are before the
 *     open block's rows, which may name them.  Nodes and infos are packed before events.
 *   - A process's begin and end close the block first: their place among the events counts.
 *   - A kept stack's node is in the open block or written: kept comes after that.
 *   - The open block and body together have MT_WRITER_FRAME_EVENTS events at most, and
 *     body and kept are never much longer than FRAME_BYTES and KEPT_BYTES without being
 *     written.
 *   - error is the first failure; after it nothing is written.
 */
#include "artifact/writer.h"

#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "artifact/columns.h"
#include "artifact/infos.h"
#include "artifact/output.h"
#include "artifact/reader.h"
#include "artifact/weight.h"
#include "wire/stack_delta.h"

#define ZSTD_LEVEL 1
/* One less than the level has: columns of numbers compress no better by a larger table, which
 * leaves less room in the cache. */
#define ZSTD_HASH_LOG 13
/* A frame is written when body has this much.  One record may be longer, up to what a
 * reader takes in a frame. */
#define FRAME_BYTES (1024 * 1024)
#define KEPT_BYTES (4 * 1024 * 1024)

/* Records that are packed. */
struct packed {
	uint8_t *bytes;
	size_t len, cap;
};

/* The rows of a block, by column. */
struct block {
	const char *kind;
	uint64_t first; /* number of its first row in the table */
	uint32_t n;
	uint32_t n_columns;
	struct mt_column columns[4];
};

enum { NODE_PARENT, NODE_MODULE, NODE_OFFSET, NODE_EXACT };
enum { INFO_NODE, INFO_SIZE, INFO_TYPE, INFO_FUNCTION };
enum { EVENT_INFO, EVENT_THREAD, EVENT_TIME, EVENT_ADDRESS };

struct mt_writer {
	struct mt_output output; /* a frame and what goes with it */
	int error;
	uint64_t weight; /* of all that body has and had */
	uint64_t next_module, next_node, next_process, next_thread, next_mappings;
	uint64_t mapped_end; /* of the last mappings: they go on there */

	msgpack_packer packer; /* appends to into */
	struct packed *into;   /* body, but while a record of kept is packed */
	struct packed body, kept;
	uint32_t frame_events;
	struct block nodes, infos, events;
	struct mt_infos table;

	ZSTD_CCtx *encoder;
	XXH64_state_t *records; /* digest of all that was packed and written */
	XXH64_state_t *frames;	/* digest of the frames that it was written in */

	void (*observe)(void *ctx, const struct mt_writer_frame *frame); /* NULL: nobody does */
	void *observe_ctx;
};

static int fail(struct mt_writer *writer, int r)
{
	if (!writer->error)
		writer->error = r;
	return writer->error;
}

/* msgpack-c's way out: failure is in writer->error, so its results need no look. */
static int append(void *arg, const char *bytes, size_t len)
{
	struct mt_writer *writer = arg;
	struct packed *into = writer->into;

	if (!len)
		return 0;
	if (len > into->cap - into->len) {
		size_t cap = 2 * into->cap + len;
		uint8_t *more = realloc(into->bytes, cap);

		if (!more)
			return fail(writer, -ENOMEM);
		into->bytes = more;
		into->cap = cap;
	}
	memcpy(into->bytes + into->len, bytes, len);
	into->len += len;
	return 0;
}

static void pack_bytes(struct mt_writer *writer, const void *bytes, size_t len)
{
	msgpack_pack_bin(&writer->packer, len);
	msgpack_pack_bin_body(&writer->packer, bytes, len);
}

static void pack_string(struct mt_writer *writer, const char *string)
{
	pack_bytes(writer, string ? string : "", string ? strlen(string) : 0);
}

static void pack_name(struct mt_writer *writer, const char *name)
{
	msgpack_pack_str(&writer->packer, strlen(name));
	msgpack_pack_str_body(&writer->packer, name, strlen(name));
}

static void pack_uint(struct mt_writer *writer, uint64_t value)
{
	msgpack_pack_uint64(&writer->packer, value);
}

/* Begins a record of so many elements, its kind included. */
static void pack_kind(struct mt_writer *writer, const char *kind, size_t elements)
{
	msgpack_pack_array(&writer->packer, elements);
	pack_name(writer, kind);
}

/*
 * Fills the file up to what its content weighs.  Before the frame that output has from at on,
 * as a reader that is at its rows has not seen what comes after it.
 */
static int fill(struct mt_writer *writer, size_t at)
{
	uint64_t least = (writer->weight + MT_WEIGHT_PER_BYTE - 1) / MT_WEIGHT_PER_BYTE;
	uint64_t bytes = writer->output.written + writer->output.len;

	return bytes < least ? mt_output_fill(&writer->output, at, least - bytes) : 0;
}

/* Compresses body, appends it to output and makes it empty. */
static int add_body(struct mt_writer *writer)
{
	struct mt_output *output = &writer->output;
	size_t start = output->len, len;
	uint8_t *at;
	int r;

	if (writer->error)
		return writer->error;
	if (writer->body.len > MT_READER_FRAME_BYTES)
		return fail(writer, -E2BIG);
	r = mt_output_reserve(output, ZSTD_compressBound(writer->body.len));
	if (r < 0)
		return fail(writer, r);
	at = output->bytes + start;
	len = ZSTD_compress2(writer->encoder, at, output->cap - start, writer->body.bytes,
			     writer->body.len);
	if (ZSTD_isError(len))
		return fail(writer, -ENOMEM); /* its only failure here */
	XXH64_update(writer->records, writer->body.bytes, writer->body.len);
	XXH64_update(writer->frames, at, len);
	output->len += len;
	writer->body.len = 0;
	writer->frame_events = 0;
	r = fill(writer, start);
	return r < 0 ? fail(writer, r) : 0;
}

static void tell_observer(const struct mt_writer *writer, const struct mt_writer_frame *frame)
{
	if (writer->observe)
		writer->observe(writer->observe_ctx, frame);
}

static int write_body(struct mt_writer *writer)
{
	struct mt_writer_frame frame = {
		.events = writer->frame_events,
		.packed_bytes = writer->body.len,
	};
	int r = add_body(writer);

	if (r < 0)
		return r;
	frame.frame_bytes = writer->output.len;
	tell_observer(writer, &frame);
	r = mt_output_write(&writer->output);
	if (r < 0)
		return fail(writer, r);
	frame.written = true;
	tell_observer(writer, &frame);
	return 0;
}

/* Packs a block's rows, and makes it empty. */
static void pack_block(struct mt_writer *writer, struct block *block)
{
	if (!block->n)
		return;
	pack_kind(writer, block->kind, 4);
	pack_uint(writer, block->first);
	pack_uint(writer, block->n);
	msgpack_pack_array(&writer->packer, block->n_columns);
	for (uint32_t i = 0; i < block->n_columns; i++) {
		struct mt_column *column = &block->columns[i];

		mt_column_end(column);
		msgpack_pack_array(&writer->packer, 3);
		pack_name(writer, column->name);
		pack_name(writer, column->encoding);
		pack_bytes(writer, column->bytes, column->len);
		mt_column_reset(column);
	}
	writer->weight += MT_WEIGHT_ROW * (uint64_t)block->n;
	block->first += block->n;
	block->n = 0;
}

static void close_block(struct mt_writer *writer)
{
	pack_block(writer, &writer->nodes);
	pack_block(writer, &writer->infos);
	pack_block(writer, &writer->events);
}

/* After a record was packed. */
static int packed(struct mt_writer *writer)
{
	if (writer->error)
		return writer->error;
	if (writer->body.len < FRAME_BYTES)
		return 0;
	return mt_writer_flush(writer);
}

static int init_block(struct block *block, const char *kind, uint64_t first,
		      const char *const (*columns)[2])
{
	block->kind = kind;
	block->first = first;
	for (; block->n_columns < 4; block->n_columns++) {
		int r = mt_column_init(&block->columns[block->n_columns],
				       columns[block->n_columns][0], columns[block->n_columns][1]);

		if (r < 0)
			return r;
	}
	return 0;
}

static void done_block(struct block *block)
{
	for (uint32_t i = 0; i < block->n_columns; i++)
		mt_column_done(&block->columns[i]);
}

static int init_blocks(struct mt_writer *writer)
{
	static const char *const nodes[4][2] = {
		[NODE_PARENT] = { "parent", "delta" },
		[NODE_MODULE] = { "module", "runs" },
		[NODE_OFFSET] = { "offset", "varint" },
		[NODE_EXACT] = { "exact", "runs" },
	};
	static const char *const infos[4][2] = {
		[INFO_NODE] = { "node", "delta" },
		[INFO_SIZE] = { "size", "varint" },
		[INFO_TYPE] = { "type", "runs" },
		[INFO_FUNCTION] = { "function", "runs" },
	};
	static const char *const events[4][2] = {
		[EVENT_INFO] = { "info", "varint" },
		[EVENT_THREAD] = { "thread", "runs" },
		[EVENT_TIME] = { "time", "delta" },
		[EVENT_ADDRESS] = { "address", "delta" },
	};
	int r = init_block(&writer->nodes, MT_KIND_NODES, MT_NODE_FIRST, nodes);

	if (r == 0)
		r = init_block(&writer->infos, MT_KIND_INFOS, 0, infos);
	if (r == 0)
		r = init_block(&writer->events, MT_KIND_EVENTS, 0, events);
	return r;
}

static int write_header(struct mt_writer *writer, const struct mt_header *header)
{
	size_t argc = 0;
	int r = mt_output_skippable(&writer->output, MT_HEAD, MT_HEAD_BYTES);

	if (r < 0)
		return fail(writer, r);
	pack_kind(writer, MT_SIGNATURE, 2);
	pack_uint(writer, MT_FORMAT_VERSION);
	while (header->argv && header->argv[argc])
		argc++;
	pack_kind(writer, MT_KIND_HEADER, 8);
	pack_uint(writer, header->start_ns);
	pack_uint(writer, header->wall_ns);
	pack_uint(writer, header->capture);
	pack_uint(writer, header->budget_bytes);
	pack_string(writer, header->machine);
	pack_string(writer, header->program);
	msgpack_pack_array(&writer->packer, argc);
	for (size_t i = 0; i < argc; i++)
		pack_string(writer, header->argv[i]);
	return write_body(writer);
}

static bool set_up(ZSTD_CCtx *encoder)
{
	static const struct {
		ZSTD_cParameter what;
		int value;
	} parameters[] = {
		{ ZSTD_c_compressionLevel, ZSTD_LEVEL },
		{ ZSTD_c_hashLog, ZSTD_HASH_LOG },
		{ ZSTD_c_checksumFlag, 1 },
	};
	size_t i = 0, n = sizeof(parameters) / sizeof(parameters[0]);

	while (i < n && !ZSTD_isError(ZSTD_CCtx_setParameter(encoder, parameters[i].what,
							     parameters[i].value)))
		i++;
	return i == n;
}

int mt_writer_new(int fd, const struct mt_header *header, struct mt_writer **ret)
{
	struct mt_writer *writer = calloc(1, sizeof(*writer));
	int r = -ENOMEM;

	if (!writer) {
		close(fd);
		return -ENOMEM;
	}
	mt_output_init(&writer->output, fd);
	writer->next_node = MT_NODE_FIRST;
	writer->next_process = 1;
	writer->next_thread = 1;
	writer->into = &writer->body;
	msgpack_packer_init(&writer->packer, writer, append);
	writer->encoder = ZSTD_createCCtx();
	writer->records = XXH64_createState();
	writer->frames = XXH64_createState();
	if (writer->encoder && writer->records && writer->frames && set_up(writer->encoder)) {
		XXH64_reset(writer->records, 0);
		XXH64_reset(writer->frames, 0);
		r = init_blocks(writer);
	}
	if (r == 0)
		r = write_header(writer, header);
	if (r < 0) {
		mt_writer_free(writer);
		return r;
	}
	*ret = writer;
	return 0;
}

void mt_writer_free(struct mt_writer *writer)
{
	if (!writer)
		return;
	mt_output_done(&writer->output);
	done_block(&writer->nodes);
	done_block(&writer->infos);
	done_block(&writer->events);
	mt_infos_done(&writer->table);
	ZSTD_freeCCtx(writer->encoder);
	XXH64_freeState(writer->records);
	XXH64_freeState(writer->frames);
	free(writer->body.bytes);
	free(writer->kept.bytes);
	free(writer);
}

int mt_writer_module(struct mt_writer *writer, const struct mt_module *module)
{
	if (writer->error)
		return writer->error;
	if (module->id != writer->next_module || module->id == UINT32_MAX)
		return fail(writer, -EINVAL);
	writer->next_module++;
	writer->weight += mt_weight_module(module);
	pack_kind(writer, MT_KIND_MODULE, 5);
	pack_uint(writer, module->id);
	pack_uint(writer, module->flags);
	pack_string(writer, module->path);
	pack_bytes(writer, module->build_id, module->build_id_bytes);
	return packed(writer);
}

static void pack_symbol(struct mt_writer *writer, const struct mt_symbol *symbol)
{
	msgpack_pack_array(&writer->packer, 4);
	pack_uint(writer, symbol->offset);
	pack_uint(writer, symbol->bytes);
	pack_uint(writer, symbol->info);
	pack_string(writer, symbol->name);
}

int mt_writer_symbols(struct mt_writer *writer, const struct mt_module_symbols *symbols)
{
	if (writer->error)
		return writer->error;
	if (symbols->module >= writer->next_module || symbols->len > MT_SYMBOLS_LEN)
		return fail(writer, -EINVAL);
	writer->weight += mt_weight_symbols(symbols);
	pack_kind(writer, MT_KIND_SYMBOLS, 4);
	pack_uint(writer, symbols->module);
	pack_uint(writer, symbols->left_out);
	msgpack_pack_array(&writer->packer, symbols->len);
	for (uint32_t i = 0; i < symbols->len; i++)
		pack_symbol(writer, &symbols->symbols[i]);
	return packed(writer);
}

int mt_writer_node(struct mt_writer *writer, const struct mt_node *node)
{
	struct block *nodes = &writer->nodes;

	if (writer->error)
		return writer->error;
	if (node->id != writer->next_node || node->parent >= node->id ||
	    (node->module != UINT32_MAX && node->module >= writer->next_module))
		return fail(writer, -EINVAL);
	if (nodes->n == MT_BLOCK_ROWS) {
		int r = mt_writer_flush(writer);

		if (r < 0)
			return r;
	}
	writer->next_node++;
	mt_column_delta(&nodes->columns[NODE_PARENT], node->parent);
	mt_column_runs(&nodes->columns[NODE_MODULE], node->module);
	mt_column_varint(&nodes->columns[NODE_OFFSET], node->offset);
	mt_column_runs(&nodes->columns[NODE_EXACT], node->exact);
	nodes->n++;
	return 0;
}

int mt_writer_process(struct mt_writer *writer, const struct mt_process *process)
{
	if (writer->error)
		return writer->error;
	if (process->id != writer->next_process || process->parent >= process->id)
		return fail(writer, -EINVAL);
	writer->next_process++;
	writer->weight += mt_weight_process(process);
	close_block(writer);
	pack_kind(writer, MT_KIND_PROCESS, 8);
	pack_uint(writer, process->id);
	pack_uint(writer, process->parent);
	pack_uint(writer, process->tgid);
	pack_uint(writer, process->how);
	pack_uint(writer, process->start_ns);
	pack_string(writer, process->exe);
	pack_string(writer, process->name);
	return packed(writer);
}

int mt_writer_process_end(struct mt_writer *writer, const struct mt_process_end *end)
{
	if (writer->error)
		return writer->error;
	if (!end->id || end->id >= writer->next_process)
		return fail(writer, -EINVAL);
	writer->weight += MT_WEIGHT_PROCESS_END;
	close_block(writer);
	pack_kind(writer, MT_KIND_PROCESS_END, 4);
	pack_uint(writer, end->id);
	pack_uint(writer, end->end_ns);
	msgpack_pack_int32(&writer->packer, end->status);
	return packed(writer);
}

int mt_writer_thread(struct mt_writer *writer, const struct mt_thread_info *thread)
{
	if (writer->error)
		return writer->error;
	if (!thread->id || thread->id > writer->next_thread || !thread->process ||
	    thread->process >= writer->next_process)
		return fail(writer, -EINVAL);
	if (thread->id == writer->next_thread)
		writer->next_thread++;
	writer->weight += mt_weight_thread(thread);
	pack_kind(writer, MT_KIND_THREAD, 6);
	pack_uint(writer, thread->id);
	pack_uint(writer, thread->process);
	pack_uint(writer, thread->tid);
	pack_uint(writer, thread->start_ns);
	pack_string(writer, thread->name);
	return packed(writer);
}

int mt_writer_not_tracked(struct mt_writer *writer, const struct mt_not_tracked *what)
{
	if (writer->error)
		return writer->error;
	writer->weight += mt_weight_not_tracked(what);
	pack_kind(writer, MT_KIND_NOT_TRACKED, 4);
	pack_uint(writer, what->tgid);
	pack_string(writer, what->what);
	pack_string(writer, what->reason);
	return packed(writer);
}

static void pack_mapping(struct mt_writer *writer, const struct mt_mapping *mapping)
{
	msgpack_pack_array(&writer->packer, 5);
	pack_uint(writer, mapping->start);
	pack_uint(writer, mapping->end);
	pack_uint(writer, mapping->bias);
	pack_uint(writer, mapping->module);
	pack_uint(writer, mapping->flags);
}

/* After a record was packed into kept. */
static int packed_kept(struct mt_writer *writer)
{
	writer->into = &writer->body;
	if (writer->error)
		return writer->error;
	if (writer->kept.len < KEPT_BYTES)
		return 0;
	return mt_writer_flush(writer);
}

int mt_writer_mappings(struct mt_writer *writer, const struct mt_mappings *mappings)
{
	bool goes_on = mappings->id + 1ULL == writer->next_mappings;
	uint64_t end = goes_on ? writer->mapped_end : 0;

	if (writer->error)
		return writer->error;
	if ((!goes_on && mappings->id != writer->next_mappings) || mappings->id == UINT32_MAX ||
	    mappings->len > MT_MAPPINGS_LEN)
		return fail(writer, -EINVAL);
	for (uint32_t i = 0; i < mappings->len; i++) {
		const struct mt_mapping *mapping = &mappings->mappings[i];

		if (mapping->start < end || mapping->start >= mapping->end ||
		    mapping->module >= writer->next_module)
			return fail(writer, -EINVAL);
		end = mapping->end;
	}
	writer->next_mappings = mappings->id + 1ULL;
	writer->mapped_end = end;
	writer->weight += mt_weight_mappings(mappings);
	writer->into = &writer->kept;
	pack_kind(writer, MT_KIND_MAPPINGS, 3);
	pack_uint(writer, mappings->id);
	msgpack_pack_array(&writer->packer, mappings->len);
	for (uint32_t i = 0; i < mappings->len; i++)
		pack_mapping(writer, &mappings->mappings[i]);
	return packed_kept(writer);
}

/* The words as the file has them, little-endian. */
static void pack_words(struct mt_writer *writer, const uint64_t *words, size_t n)
{
	uint8_t bytes[MT_GROUP_BYTES];
	size_t in_bytes = 0;

	msgpack_pack_bin(&writer->packer, 8 * n);
	for (size_t i = 0; i < n; i++) {
		mt_put_little_endian(bytes + in_bytes, words[i], 8);
		in_bytes += 8;
		if (in_bytes == sizeof(bytes) || i + 1 == n) {
			append(writer, (const char *)bytes, in_bytes);
			in_bytes = 0;
		}
	}
}

int mt_writer_kept_stack(struct mt_writer *writer, const struct mt_kept_stack *stack)
{
	if (writer->error)
		return writer->error;
	if (!stack->thread || stack->thread >= writer->next_thread ||
	    stack->node >= writer->next_node || stack->mappings >= writer->next_mappings ||
	    !mt_window_valid(stack->start, stack->end, MT_BUDGET_MAX_BYTES))
		return fail(writer, -EINVAL);
	writer->mapped_end = UINT64_MAX;
	writer->weight += MT_WEIGHT_KEPT_STACK;
	writer->into = &writer->kept;
	pack_kind(writer, MT_KIND_KEPT_STACK, 10);
	pack_uint(writer, stack->thread);
	pack_uint(writer, stack->node);
	pack_uint(writer, stack->mappings);
	pack_uint(writer, stack->flags);
	pack_uint(writer, stack->start);
	pack_uint(writer, stack->end);
	pack_uint(writer, stack->epoch);
	pack_uint(writer, stack->digest);
	pack_words(writer, stack->words, (stack->end - stack->start) / 8);
	return packed_kept(writer);
}

/* A row for an info that is new, or that the table had no room for: what it said, r. */
static __attribute__((noinline)) int add_info(struct mt_writer *writer, const struct mt_info *info,
					      int r, uint32_t *ret)
{
	struct block *infos = &writer->infos;

	if (r == -ENOSPC) {
		/* Rows of the full table are still to be packed, and events that name them. */
		close_block(writer);
		mt_infos_reset(&writer->table);
		infos->first = 0;
		r = mt_infos_intern(&writer->table, info, ret);
	}
	if (r < 0)
		return r;
	mt_column_delta(&infos->columns[INFO_NODE], info->node);
	mt_column_varint(&infos->columns[INFO_SIZE], info->size);
	mt_column_runs(&infos->columns[INFO_TYPE], info->type);
	mt_column_runs(&infos->columns[INFO_FUNCTION], info->function);
	infos->n++;
	return 0;
}

int mt_writer_event(struct mt_writer *writer, const struct mt_event *event)
{
	const struct mt_info info = { .size = event->size,
				      .node = event->node,
				      .type = event->type,
				      .function = event->function };
	struct block *events = &writer->events;
	uint32_t row;
	int r;

	if (writer->error)
		return writer->error;
	if (event->type == MT_EVENT_NONE || event->type >= _MT_EVENT_MAX || !event->thread ||
	    event->thread >= writer->next_thread || event->node >= writer->next_node)
		return fail(writer, -EINVAL);
	r = mt_infos_intern(&writer->table, &info, &row);
	if (r)
		r = add_info(writer, &info, r, &row);
	if (r < 0)
		return fail(writer, r);
	mt_column_varint(&events->columns[EVENT_INFO], row);
	mt_column_runs(&events->columns[EVENT_THREAD], event->thread);
	mt_column_delta(&events->columns[EVENT_TIME], event->time_ns);
	mt_column_delta(&events->columns[EVENT_ADDRESS], event->address);
	events->n++;
	if (++writer->frame_events < MT_WRITER_FRAME_EVENTS)
		return 0;
	return mt_writer_flush(writer);
}

int mt_writer_flush(struct mt_writer *writer)
{
	if (writer->error)
		return writer->error;
	close_block(writer);
	append(writer, (const char *)writer->kept.bytes, writer->kept.len);
	writer->kept.len = 0;
	if (writer->error || !writer->body.len)
		return writer->error;
	return write_body(writer);
}

static int add_seal(struct mt_writer *writer)
{
	uint8_t seal[MT_SEAL_BYTES] = MT_SEAL;

	mt_put_little_endian(seal + sizeof(MT_SEAL) - 1, XXH64_digest(writer->frames), 8);
	return mt_output_skippable(&writer->output, seal, MT_SEAL_BYTES);
}

int mt_writer_finish(struct mt_writer *writer, const struct mt_footer *footer)
{
	int r = mt_writer_flush(writer);

	if (r < 0)
		return r;
	pack_kind(writer, MT_KIND_FOOTER, 7);
	pack_uint(writer, footer->end_ns);
	msgpack_pack_int32(&writer->packer, footer->status);
	pack_uint(writer, footer->events);
	pack_uint(writer, footer->lost_events);
	pack_uint(writer, footer->lost_stacks);
	if (writer->error)
		return writer->error;
	XXH64_update(writer->records, writer->body.bytes, writer->body.len);
	pack_uint(writer, XXH64_digest(writer->records));
	r = add_body(writer);
	if (r == 0)
		r = add_seal(writer);
	if (r == 0)
		r = mt_output_write(&writer->output);
	if (r < 0)
		return fail(writer, r);
	fail(writer, -ESHUTDOWN); /* for calls after this one */
	return mt_output_close(&writer->output);
}

void mt_writer_observe(struct mt_writer *writer,
		       void (*observe)(void *ctx, const struct mt_writer_frame *frame), void *ctx)
{
	writer->observe = observe;
	writer->observe_ctx = ctx;
}

uint64_t mt_writer_bytes(const struct mt_writer *writer)
{
	return writer->output.written;
}
