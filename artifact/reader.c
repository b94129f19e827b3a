/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reader.c - see reader.h for the contract
 *
 * A frame is delivered once its checksum held.  Of each record the extent is found first
 * (mt_unpack_skip), so that nothing in it can reach beyond; then a row of the table kinds
 * reads it.  Elements past those that a reader knows are from a newer writer, and ignored.
 *
 * Invariants
 *   - An id is only passed on when all that it names was passed on before.
 *   - A block of events is decoded and checked as a whole before its first is delivered.
 *   - What a file can make a reader's user keep is bounded by weight, all but what events do
 *     by defined_bytes as well; what it makes the reader keep by MT_INFOS_MAX, MT_BLOCK_ROWS
 *     and the nodes.  The header is one record.
 */
#include "artifact/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "artifact/columns.h"
#include "artifact/frames.h"
#include "artifact/infos.h"
#include "artifact/symbol_list.h"
#include "artifact/unpack.h"
#include "artifact/weight.h"
#include "base/cleanup.h"
#include "wire/stack_delta.h"

/* What the function of a step returns, besides negative errno. */
enum {
	GO = 0,
	STOP = 1, /* result->problem says why */
};

#define MAX_COLUMNS 4
/* More than Linux lets a command have. */
#define ARGS_MAX (1u << 20)

struct reader {
	const struct mt_reader_callbacks *callbacks;
	void *ctx;
	struct mt_reader_result *result;
	struct mt_frames frames;

	uint32_t next_module, next_node, next_process, next_thread, next_mappings;
	uint64_t mapped_end; /* of the last mappings: they may go on there */
	uint64_t events;
	uint64_t weight; /* of what was read */
	uint64_t defined_bytes;
	int have_head, have_header, have_seal;

	struct mt_info *infos;
	uint32_t n_infos, infos_cap;
	uint16_t *frames_of; /* of each node's chain, by its id less MT_NODE_FIRST */
	uint32_t frames_of_cap;
	uint64_t *values[MAX_COLUMNS]; /* MT_BLOCK_ROWS each; or what else a record has */
	const uint8_t *record;	       /* the one that is read */
	XXH64_state_t *digest;	       /* of all records so far */
};

static __attribute__((format(printf, 2, 3))) int problem(struct reader *reader, const char *format,
							 ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reader->result->problem, sizeof(reader->result->problem), format, args);
	va_end(args);
	return STOP;
}

static int malformed(struct reader *reader, const char *kind)
{
	return problem(reader, "a malformed record: %s", kind);
}

/* A callback's result, of which only failure counts. */
static int delivered(int r)
{
	return r < 0 ? r : GO;
}

#define DELIVER(reader, name, record)                                                              \
	((reader)->callbacks->name ? delivered((reader)->callbacks->name((reader)->ctx, (record))) \
				   : GO)

/* Weighs what a record says, before anything is made of it. */
static int weigh(struct reader *reader, const char *kind, size_t weight)
{
	reader->weight += weight;
	if (reader->weight > MT_WEIGHT_ALWAYS + MT_WEIGHT_PER_BYTE * reader->frames.end)
		return problem(reader, "more than a recording has in so many bytes: %s", kind);
	return GO;
}

/* Counts what a reader's user may keep of a record, or what it costs to pass over it. */
static int keep(struct reader *reader, size_t bytes)
{
	reader->defined_bytes += bytes;
	if (reader->defined_bytes > MT_READER_DEFINED_BYTES)
		return problem(reader, "more is defined than a reader keeps");
	return GO;
}

static int define(struct reader *reader, const char *kind, size_t bytes)
{
	int r = weigh(reader, kind, bytes);

	return r == GO ? keep(reader, bytes) : r;
}

/* Each of these reads one kind of record, from its second element on. */

static int read_header(struct reader *reader, struct mt_unpack *at)
{
	mt_cleanup(mt_freep) char **argv = NULL;
	struct mt_header header = { 0 };
	char *machine, *program;
	uint32_t argc;
	int r;

	if (reader->have_header)
		return problem(reader, "a second header");
	if (mt_unpack_uint(at, &header.start_ns) < 0 || mt_unpack_uint(at, &header.wall_ns) < 0 ||
	    mt_unpack_u32(at, &header.capture) < 0 || mt_unpack_u32(at, &header.budget_bytes) < 0 ||
	    mt_unpack_string(at, &machine) < 0 || mt_unpack_string(at, &program) < 0 ||
	    mt_unpack_array(at, &argc) < 0 || argc > ARGS_MAX)
		return malformed(reader, MT_KIND_HEADER);
	argv = calloc((size_t)argc + 1, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	for (uint32_t i = 0; i < argc; i++)
		if (mt_unpack_string(at, &argv[i]) < 0)
			return malformed(reader, MT_KIND_HEADER);
	header.machine = machine;
	header.program = program;
	header.argv = (const char *const *)argv;
	r = DELIVER(reader, header, &header);
	if (r < 0)
		return r;
	reader->have_header = 1;
	return GO;
}

static int read_module(struct reader *reader, struct mt_unpack *at)
{
	struct mt_module module = { 0 };
	uint8_t *build_id;
	size_t len;
	char *path;
	int r;

	if (mt_unpack_u32(at, &module.id) < 0 || mt_unpack_u32(at, &module.flags) < 0 ||
	    mt_unpack_string(at, &path) < 0 || mt_unpack_bytes(at, &build_id, &len) < 0 ||
	    len > MT_READER_FRAME_BYTES)
		return malformed(reader, MT_KIND_MODULE);
	if (module.id != reader->next_module || module.id == UINT32_MAX)
		return problem(reader, "module %u out of sequence", module.id);
	module.path = path;
	module.build_id = build_id;
	module.build_id_bytes = (uint32_t)len;
	r = define(reader, MT_KIND_MODULE, mt_weight_module(&module));
	if (r != GO)
		return r;
	reader->next_module++;
	return DELIVER(reader, module, &module);
}

static int read_symbols(struct reader *reader, struct mt_unpack *at)
{
	struct mt_symbol *list = (struct mt_symbol *)reader->values[0];
	struct mt_module_symbols symbols;
	int r;

	_Static_assert(MT_SYMBOLS_LEN * sizeof(*list) <= MT_BLOCK_ROWS * sizeof(uint64_t),
		       "a record's symbols have room where a column has");
	if (mt_symbol_list_read(at, list, &symbols) < 0)
		return malformed(reader, MT_KIND_SYMBOLS);
	if (symbols.module >= reader->next_module)
		return problem(reader, "symbols name what is not there");
	r = define(reader, MT_KIND_SYMBOLS, mt_weight_symbols(&symbols));
	return r == GO ? DELIVER(reader, symbols, &symbols) : r;
}

static int read_process(struct reader *reader, struct mt_unpack *at)
{
	struct mt_process process = { 0 };
	char *exe, *name;
	int r;

	if (mt_unpack_u32(at, &process.id) < 0 || mt_unpack_u32(at, &process.parent) < 0 ||
	    mt_unpack_u32(at, &process.tgid) < 0 || mt_unpack_u32(at, &process.how) < 0 ||
	    mt_unpack_uint(at, &process.start_ns) < 0 || mt_unpack_string(at, &exe) < 0 ||
	    mt_unpack_string(at, &name) < 0)
		return malformed(reader, MT_KIND_PROCESS);
	if (process.id != reader->next_process || process.parent >= process.id)
		return problem(reader, "process %u (parent %u) out of sequence", process.id,
			       process.parent);
	process.exe = exe;
	process.name = name;
	r = define(reader, MT_KIND_PROCESS, mt_weight_process(&process));
	if (r != GO)
		return r;
	reader->next_process++;
	return DELIVER(reader, process, &process);
}

static int read_process_end(struct reader *reader, struct mt_unpack *at)
{
	struct mt_process_end end = { 0 };
	int r;

	if (mt_unpack_u32(at, &end.id) < 0 || mt_unpack_uint(at, &end.end_ns) < 0 ||
	    mt_unpack_i32(at, &end.status) < 0)
		return malformed(reader, MT_KIND_PROCESS_END);
	if (!end.id || end.id >= reader->next_process)
		return problem(reader, "the end of process %u, which is not there", end.id);
	r = define(reader, MT_KIND_PROCESS_END, MT_WEIGHT_PROCESS_END);
	if (r != GO)
		return r;
	return DELIVER(reader, process_end, &end);
}

static int read_thread(struct reader *reader, struct mt_unpack *at)
{
	struct mt_thread_info thread = { 0 };
	char *name;
	int r;

	if (mt_unpack_u32(at, &thread.id) < 0 || mt_unpack_u32(at, &thread.process) < 0 ||
	    mt_unpack_u32(at, &thread.tid) < 0 || mt_unpack_uint(at, &thread.start_ns) < 0 ||
	    mt_unpack_string(at, &name) < 0)
		return malformed(reader, MT_KIND_THREAD);
	if (!thread.id || thread.id > reader->next_thread || !thread.process ||
	    thread.process >= reader->next_process)
		return problem(reader, "thread %u (process %u) out of sequence", thread.id,
			       thread.process);
	thread.name = name;
	r = define(reader, MT_KIND_THREAD, mt_weight_thread(&thread));
	if (r != GO)
		return r;
	if (thread.id == reader->next_thread)
		reader->next_thread++;
	return DELIVER(reader, thread, &thread);
}

static int read_not_tracked(struct reader *reader, struct mt_unpack *at)
{
	struct mt_not_tracked what = { 0 };
	char *text, *reason;
	int r;

	if (mt_unpack_u32(at, &what.tgid) < 0 || mt_unpack_string(at, &text) < 0 ||
	    mt_unpack_string(at, &reason) < 0)
		return malformed(reader, MT_KIND_NOT_TRACKED);
	what.what = text;
	what.reason = reason;
	r = define(reader, MT_KIND_NOT_TRACKED, mt_weight_not_tracked(&what));
	if (r != GO)
		return r;
	return DELIVER(reader, not_tracked, &what);
}

static int read_mapping(struct mt_unpack *at, struct mt_mapping *ret)
{
	struct mt_unpack mapping = *at;
	uint32_t n;

	if (mt_unpack_skip(at) < 0)
		return -EBADMSG;
	mapping.end = at->pos;
	if (mt_unpack_array(&mapping, &n) < 0 || n < 5 ||
	    mt_unpack_uint(&mapping, &ret->start) < 0 || mt_unpack_uint(&mapping, &ret->end) < 0 ||
	    mt_unpack_uint(&mapping, &ret->bias) < 0 || mt_unpack_u32(&mapping, &ret->module) < 0)
		return -EBADMSG;
	return mt_unpack_u32(&mapping, &ret->flags);
}

static int read_mappings(struct reader *reader, struct mt_unpack *at)
{
	struct mt_mapping *list = (struct mt_mapping *)reader->values[0];
	struct mt_mappings mappings = { .mappings = list };
	int r;

	_Static_assert(MT_MAPPINGS_LEN * sizeof(*list) <= MT_BLOCK_ROWS * sizeof(uint64_t),
		       "a record's mappings have room where a column has");
	if (mt_unpack_u32(at, &mappings.id) < 0 || mt_unpack_array(at, &mappings.len) < 0)
		return malformed(reader, MT_KIND_MAPPINGS);
	if (mappings.len > MT_MAPPINGS_LEN)
		return problem(reader, "%u mappings in a record", mappings.len);
	if (mappings.id == reader->next_mappings && mappings.id != UINT32_MAX)
		reader->mapped_end = 0;
	else if (mappings.id + 1ULL != reader->next_mappings)
		return problem(reader, "mappings %u out of sequence", mappings.id);
	for (uint32_t i = 0; i < mappings.len; i++) {
		if (read_mapping(at, &list[i]) < 0)
			return malformed(reader, MT_KIND_MAPPINGS);
		if (list[i].start < reader->mapped_end || list[i].start >= list[i].end)
			return problem(reader, "mappings %u overlap", mappings.id);
		if (list[i].module >= reader->next_module)
			return problem(reader, "mappings %u name what is not there", mappings.id);
		reader->mapped_end = list[i].end;
	}
	r = define(reader, MT_KIND_MAPPINGS, mt_weight_mappings(&mappings));
	if (r != GO)
		return r;
	reader->next_mappings = mappings.id + 1;
	return DELIVER(reader, mappings, &mappings);
}

static void take_words(uint64_t *words, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		words[i] = 0;
		for (int n = 7; n >= 0; n--)
			words[i] = words[i] << 8 | bytes[8 * i + (size_t)n];
	}
}

static int read_kept_stack(struct reader *reader, struct mt_unpack *at)
{
	struct mt_kept_stack stack = { .words = reader->values[0] };
	uint8_t *bytes;
	size_t len;
	int r;

	_Static_assert(MT_BUDGET_MAX_BYTES <= MT_BLOCK_ROWS * sizeof(uint64_t),
		       "a window has room where a column has");
	if (mt_unpack_u32(at, &stack.thread) < 0 || mt_unpack_u32(at, &stack.node) < 0 ||
	    mt_unpack_u32(at, &stack.mappings) < 0 || mt_unpack_u32(at, &stack.flags) < 0 ||
	    mt_unpack_uint(at, &stack.start) < 0 || mt_unpack_uint(at, &stack.end) < 0 ||
	    mt_unpack_u32(at, &stack.epoch) < 0 || mt_unpack_uint(at, &stack.digest) < 0 ||
	    mt_unpack_bytes(at, &bytes, &len) < 0)
		return malformed(reader, MT_KIND_KEPT_STACK);
	if (!mt_window_valid(stack.start, stack.end, MT_BUDGET_MAX_BYTES) ||
	    len != stack.end - stack.start)
		return problem(reader, "a kept stack that is none");
	if (!stack.thread || stack.thread >= reader->next_thread ||
	    stack.node >= reader->next_node || stack.mappings >= reader->next_mappings)
		return problem(reader, "a kept stack names what is not there");
	/* The last mappings are whole, whichever it names: nothing can be added. */
	reader->mapped_end = UINT64_MAX;
	r = weigh(reader, MT_KIND_KEPT_STACK, MT_WEIGHT_KEPT_STACK);
	if (r != GO || !reader->callbacks->kept_stack)
		return r;
	take_words(reader->values[0], bytes, len);
	return DELIVER(reader, kept_stack, &stack);
}

/* The columns that a kind of block must have, in the order of reader->values. */
struct table {
	const char *kind;
	const char *columns[MAX_COLUMNS];
};

static int read_column(struct reader *reader, struct mt_unpack *at, const struct table *table,
		       uint32_t rows, unsigned int *found)
{
	uint8_t *name, *encoding, *bytes;
	size_t name_len, encoding_len, len;
	struct mt_unpack column = *at;
	uint32_t n;
	unsigned int i = 0;
	int r;

	if (mt_unpack_skip(at) < 0)
		return malformed(reader, table->kind);
	column.end = at->pos;
	if (mt_unpack_array(&column, &n) < 0 || n < 3 ||
	    mt_unpack_bytes(&column, &name, &name_len) < 0 ||
	    mt_unpack_bytes(&column, &encoding, &encoding_len) < 0 ||
	    mt_unpack_bytes(&column, &bytes, &len) < 0)
		return malformed(reader, table->kind);
	while (i < MAX_COLUMNS && (strlen(table->columns[i]) != name_len ||
				   memcmp(table->columns[i], name, name_len) != 0))
		i++;
	if (i == MAX_COLUMNS)
		return GO; /* a newer writer's */
	if (*found & 1u << i)
		return problem(reader, "a column of %s twice: %s", table->kind, table->columns[i]);
	r = mt_column_decode((const char *)encoding, encoding_len, bytes, len, rows,
			     reader->values[i]);
	if (r == -ENOTSUP)
		return problem(reader, "the column %s of %s is encoded in a way not known here",
			       table->columns[i], table->kind);
	if (r < 0)
		return problem(reader, "the column %s of %s does not hold %u values",
			       table->columns[i], table->kind, rows);
	*found |= 1u << i;
	return GO;
}

/* Reads a block into reader->values. */
static int read_block(struct reader *reader, struct mt_unpack *at, const struct table *table,
		      uint64_t *ret_first, uint32_t *ret_rows)
{
	unsigned int found = 0;
	uint64_t first;
	uint32_t rows, n;
	int r;

	if (mt_unpack_uint(at, &first) < 0 || mt_unpack_u32(at, &rows) < 0 ||
	    mt_unpack_array(at, &n) < 0)
		return malformed(reader, table->kind);
	if (rows > MT_BLOCK_ROWS)
		return problem(reader, "%u %s in a block", rows, table->kind);
	r = weigh(reader, table->kind, (size_t)rows * MT_WEIGHT_ROW);
	if (r != GO)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		r = read_column(reader, at, table, rows, &found);

		if (r != GO)
			return r;
	}
	if (found != (1u << MAX_COLUMNS) - 1)
		return problem(reader, "a block of %s without all its columns", table->kind);
	*ret_first = first;
	*ret_rows = rows;
	return GO;
}

static int make_room_for_nodes(struct reader *reader, uint32_t rows)
{
	uint32_t need = reader->next_node - MT_NODE_FIRST + rows;
	uint32_t cap = reader->frames_of_cap ? reader->frames_of_cap : MT_BLOCK_ROWS;
	uint16_t *frames_of;

	while (cap < need)
		cap *= 2;
	if (cap == reader->frames_of_cap)
		return 0;
	frames_of = realloc(reader->frames_of, cap * sizeof(*frames_of));
	if (!frames_of)
		return -ENOMEM;
	reader->frames_of = frames_of;
	reader->frames_of_cap = cap;
	return 0;
}

/* Counts the frames of the chain that ends in the next node. */
static int count_frames(struct reader *reader, uint32_t parent)
{
	uint16_t n = 1;

	if (parent >= MT_NODE_FIRST)
		n += reader->frames_of[parent - MT_NODE_FIRST];
	if (n > MT_READER_CHAIN_FRAMES)
		return problem(reader, "a chain of more than %u frames", MT_READER_CHAIN_FRAMES);
	reader->frames_of[reader->next_node - MT_NODE_FIRST] = n;
	return GO;
}

static int read_nodes(struct reader *reader, struct mt_unpack *at)
{
	static const struct table table = { MT_KIND_NODES,
					    { "parent", "module", "offset", "exact" } };
	uint64_t *const *values = reader->values;
	uint64_t first;
	uint32_t rows;
	int r = read_block(reader, at, &table, &first, &rows);

	if (r != GO)
		return r;
	if (first != reader->next_node || rows > UINT32_MAX - reader->next_node)
		return problem(reader, "nodes out of sequence");
	r = keep(reader, (size_t)rows * sizeof(struct mt_node));
	if (r == GO)
		r = make_room_for_nodes(reader, rows);
	for (uint32_t i = 0; r == GO && i < rows; i++) {
		struct mt_node node = {
			.id = reader->next_node,
			.parent = (uint32_t)values[0][i],
			.module = (uint32_t)values[1][i],
			.offset = values[2][i],
			.exact = values[3][i] != 0,
		};

		if (values[0][i] >= node.id ||
		    (values[1][i] != UINT32_MAX && values[1][i] >= reader->next_module))
			return problem(reader, "node %u names what is not there", node.id);
		r = count_frames(reader, node.parent);
		if (r != GO)
			return r;
		reader->next_node++;
		r = DELIVER(reader, node, &node);
	}
	return r;
}

static int read_infos(struct reader *reader, struct mt_unpack *at)
{
	static const struct table table = { MT_KIND_INFOS, { "node", "size", "type", "function" } };
	uint64_t *const *values = reader->values;
	uint64_t first;
	uint32_t rows;
	int r = read_block(reader, at, &table, &first, &rows);

	if (r != GO)
		return r;
	if (first == 0)
		reader->n_infos = 0;
	if (first != reader->n_infos || rows > MT_INFOS_MAX - reader->n_infos)
		return problem(reader, "infos out of sequence");
	while (reader->infos_cap - reader->n_infos < rows) {
		uint32_t cap = reader->infos_cap ? 2 * reader->infos_cap : MT_BLOCK_ROWS;
		struct mt_info *infos = realloc(reader->infos, cap * sizeof(*infos));

		if (!infos)
			return -ENOMEM;
		reader->infos = infos;
		reader->infos_cap = cap;
	}
	for (uint32_t i = 0; i < rows; i++) {
		if (values[0][i] >= reader->next_node || values[2][i] == MT_EVENT_NONE ||
		    values[2][i] >= _MT_EVENT_MAX || values[3][i] > UINT8_MAX)
			return problem(reader, "info %u names what is not there", reader->n_infos);
		reader->infos[reader->n_infos++] = (struct mt_info){
			.node = (uint32_t)values[0][i],
			.size = values[1][i],
			.type = (uint8_t)values[2][i],
			.function = (uint8_t)values[3][i],
		};
	}
	return GO;
}

static int read_events(struct reader *reader, struct mt_unpack *at)
{
	static const struct table table = { MT_KIND_EVENTS,
					    { "info", "thread", "time", "address" } };
	uint64_t *const *values = reader->values;
	uint64_t first;
	uint32_t rows;
	int r = read_block(reader, at, &table, &first, &rows);

	if (r != GO)
		return r;
	if (first != reader->events)
		return problem(reader, "events out of sequence");
	for (uint32_t i = 0; i < rows; i++)
		if (values[0][i] >= reader->n_infos || !values[1][i] ||
		    values[1][i] >= reader->next_thread)
			return problem(reader, "event %llu names what is not there",
				       (unsigned long long)first + i);
	reader->events += rows;
	if (!reader->callbacks->event)
		return GO;
	for (uint32_t i = 0; r == GO && i < rows; i++) {
		const struct mt_info *info = &reader->infos[values[0][i]];
		struct mt_event event = {
			.time_ns = values[2][i],
			.address = values[3][i],
			.size = info->size,
			.thread = (uint32_t)values[1][i],
			.node = info->node,
			.type = info->type,
			.function = info->function,
		};

		r = DELIVER(reader, event, &event);
	}
	return r;
}

static int read_footer(struct reader *reader, struct mt_unpack *at)
{
	struct mt_footer footer = { 0 };
	uint64_t digest;
	int r;

	if (mt_unpack_uint(at, &footer.end_ns) < 0 || mt_unpack_i32(at, &footer.status) < 0 ||
	    mt_unpack_uint(at, &footer.events) < 0 || mt_unpack_uint(at, &footer.lost_events) < 0 ||
	    mt_unpack_uint(at, &footer.lost_stacks) < 0)
		return malformed(reader, MT_KIND_FOOTER);
	XXH64_update(reader->digest, reader->record, (size_t)(at->pos - reader->record));
	if (mt_unpack_uint(at, &digest) < 0)
		return malformed(reader, MT_KIND_FOOTER);
	if (digest != XXH64_digest(reader->digest))
		return problem(reader, "records were changed, lost or added");
	r = DELIVER(reader, footer, &footer);
	if (r < 0)
		return r;
	reader->result->complete = 1;
	return GO;
}

/* clang-format off */
static const struct {
	const char *kind;
	uint32_t elements; /* at least, the kind included */
	int (*read)(struct reader *reader, struct mt_unpack *at);
} kinds[] = {
	{ MT_KIND_HEADER, 8, read_header },
	{ MT_KIND_MODULE, 5, read_module },
	{ MT_KIND_SYMBOLS, 4, read_symbols },
	{ MT_KIND_PROCESS, 8, read_process },
	{ MT_KIND_PROCESS_END, 4, read_process_end },
	{ MT_KIND_THREAD, 6, read_thread },
	{ MT_KIND_NOT_TRACKED, 4, read_not_tracked },
	{ MT_KIND_NODES, 4, read_nodes },
	{ MT_KIND_INFOS, 4, read_infos },
	{ MT_KIND_EVENTS, 4, read_events },
	{ MT_KIND_MAPPINGS, 3, read_mappings },
	{ MT_KIND_KEPT_STACK, 10, read_kept_stack },
	{ MT_KIND_FOOTER, 7, read_footer },
};
/* clang-format on */

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The first record of all. */
static int read_signature(struct reader *reader, struct mt_unpack *at, uint32_t elements)
{
	uint64_t version;

	if (elements < 2 || mt_unpack_uint(at, &version) < 0 || !version)
		return malformed(reader, MT_SIGNATURE);
	reader->result->version = version > UINT32_MAX ? UINT32_MAX : (uint32_t)version;
	return version > MT_FORMAT_VERSION ? -EPROTONOSUPPORT : GO;
}

static int is(const uint8_t *kind, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(kind, name, len) == 0;
}

/* Reads the record at at->pos, whose extent is at. */
static int read_record(struct reader *reader, struct mt_unpack *at)
{
	size_t bytes = (size_t)(at->end - at->pos), len;
	uint8_t *kind;
	uint32_t elements;
	unsigned int i = 0;

	reader->record = at->pos;
	if (mt_unpack_array(at, &elements) < 0 || !elements || mt_unpack_bytes(at, &kind, &len) < 0)
		return problem(reader, "something that is no record");
	if (!reader->result->version) {
		XXH64_update(reader->digest, reader->record, bytes);
		if (!is(kind, len, MT_SIGNATURE))
			return problem(reader, "it does not begin as one");
		return read_signature(reader, at, elements);
	}
	while (i < N_KINDS && !is(kind, len, kinds[i].kind))
		i++;
	/* Before it is read: that may move strings in it.  The footer sees to itself. */
	if (i == N_KINDS || kinds[i].read != read_footer)
		XXH64_update(reader->digest, reader->record, bytes);
	if (i == N_KINDS) {
		reader->result->skipped++;
		return keep(reader, sizeof(struct mt_unpack));
	}
	if (!reader->have_header && kinds[i].read != read_header)
		return problem(reader, "it does not begin with a header");
	if (elements < kinds[i].elements)
		return malformed(reader, kinds[i].kind);
	return kinds[i].read(reader, at);
}

static int read_frame(struct reader *reader)
{
	struct mt_unpack rest = { reader->frames.bytes, reader->frames.bytes + reader->frames.len };

	while (rest.pos < rest.end) {
		struct mt_unpack record = rest;
		int r;

		if (reader->result->complete)
			return problem(reader, "a record after the footer");
		if (mt_unpack_skip(&rest) < 0)
			return problem(reader, "something that is no record");
		record.end = rest.pos;
		r = read_record(reader, &record);
		if (r != GO)
			return r;
	}
	return GO;
}

/* The head and the seal are ours, other skippable frames somebody else's. */
static int read_skippable(struct reader *reader)
{
	const struct mt_frames *frames = &reader->frames;
	uint64_t digest = 0;

	if (frames->magic != MT_FRAME_MAGIC)
		return GO;
	if (frames->len == MT_HEAD_BYTES && memcmp(frames->bytes, MT_HEAD, MT_HEAD_BYTES) == 0)
		reader->have_head = 1;
	if (frames->len != MT_SEAL_BYTES ||
	    memcmp(frames->bytes, MT_SEAL, sizeof(MT_SEAL) - 1) != 0)
		return GO;
	for (size_t i = frames->len; i > MT_SEAL_BYTES - 8; i--)
		digest = digest << 8 | frames->bytes[i - 1];
	if (digest != XXH64_digest(frames->digest))
		return problem(reader, "its seal is broken: damage that changed no record");
	reader->have_seal = 1;
	return GO;
}

/* At the end of the file. */
static int read_end(struct reader *reader)
{
	if (!reader->result->complete)
		return problem(reader, "it has no footer");
	/* A file that was compressed again has lost both. */
	if (reader->have_head != reader->have_seal)
		return problem(reader,
			       reader->have_head ? "it has no seal" : "its head is damaged");
	return GO;
}

static int read_file(struct reader *reader)
{
	for (;;) {
		int r = mt_frames_next(&reader->frames);

		if (r == -EBADMSG)
			return problem(reader, "%s%s", reader->frames.problem,
				       reader->result->complete ? ", after the footer" : "");
		if (r < 0)
			return r;
		if (r == 0)
			return read_end(reader);
		r = r == MT_FRAME_SKIPPABLE ? read_skippable(reader) : read_frame(reader);
		if (r != GO)
			return r;
		reader->result->good_bytes = reader->frames.end;
	}
}

static int start(struct reader *reader, int fd)
{
	int r = mt_frames_init(&reader->frames, fd, MT_READER_FRAME_BYTES);

	if (r < 0)
		return r;
	for (int i = 0; i < MAX_COLUMNS; i++) {
		reader->values[i] = malloc(MT_BLOCK_ROWS * sizeof(*reader->values[i]));
		if (!reader->values[i])
			return -ENOMEM;
	}
	reader->digest = XXH64_createState();
	if (!reader->digest)
		return -ENOMEM;
	XXH64_reset(reader->digest, 0);
	return 0;
}

static void stop(struct reader *reader)
{
	mt_frames_done(&reader->frames);
	for (int i = 0; i < MAX_COLUMNS; i++)
		free(reader->values[i]);
	free(reader->infos);
	free(reader->frames_of);
	XXH64_freeState(reader->digest);
}

int mt_reader_read(int fd, const struct mt_reader_callbacks *callbacks, void *ctx,
		   struct mt_reader_result *ret)
{
	struct reader reader = {
		.callbacks = callbacks,
		.ctx = ctx,
		.result = ret,
		.frames = { .fd = -1 },
		.next_node = MT_NODE_FIRST,
		.next_process = 1,
		.next_thread = 1,
	};
	struct stat st;
	int r;

	*ret = (struct mt_reader_result){ 0 };
	r = start(&reader, fd);
	if (r == 0)
		r = read_file(&reader);
	ret->file_bytes = reader.frames.read_bytes;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > ret->file_bytes)
		ret->file_bytes = (uint64_t)st.st_size;
	stop(&reader);
	if (r == STOP)
		r = reader.have_header ? 0 : -EBADMSG;
	return r;
}
