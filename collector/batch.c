/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * batch.c - see batch.h for the contract
 *
 * Invariants
 *   - Each record begins with a tag: that of a struct mt_batch_event or mt_batch_node, or the
 *     kind of a struct item, the fixed struct, then its strings, each with its NUL, or its
 *     array; the whole is padded to 8 bytes, so that the structs are aligned where they lie,
 *     and arrays, behind structs that are multiples of 8, too.
 *   - Pointers in a stored struct mean nothing: they are set again when it is handed on.  But
 *     those of an array's elements, to strings in the batch, are set when it is put in: a batch
 *     stays where it is.
 */
#include "collector/batch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"

struct item {
	uint8_t kind; /* enum mt_batch_kind */
	uint8_t spare[3];
	uint32_t bytes; /* of item, struct, strings and padding */
};

enum { TAG_EVENT = 0x80, TAG_NODE };

_Static_assert(sizeof(struct mt_batch_event) % 8 == 0 && sizeof(struct mt_batch_node) % 8 == 0,
	       "what is behind these would not be aligned");

_Static_assert(sizeof(struct mt_mappings) % 8 == 0 && sizeof(struct mt_module_symbols) % 8 == 0 &&
		       sizeof(struct mt_kept_stack) % 8 == 0,
	       "arrays behind these would not be aligned");

/* What follows the fixed struct. */
struct tail {
	const void *bytes;
	size_t len;
};

struct mt_batch {
	size_t used;
	char bytes[MT_BATCH_BYTES] __attribute__((aligned(8)));
};

int mt_batch_new(struct mt_batch **ret)
{
	/* Populated: without a fault for each page. */
	struct mt_batch *batch = mmap(NULL, sizeof(*batch), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (batch == MAP_FAILED)
		return mt_neg_errno();
	mt_batch_clear(batch);
	*ret = batch;
	return 0;
}

void mt_batch_free(struct mt_batch *batch)
{
	if (batch)
		munmap(batch, sizeof(*batch));
}

void mt_batch_clear(struct mt_batch *batch)
{
	batch->used = 0;
}

bool mt_batch_empty(const struct mt_batch *batch)
{
	return batch->used == 0;
}

/* Room for len bytes, a multiple of 8; NULL: there is none. */
static inline void *take(struct mt_batch *batch, size_t len)
{
	void *at = batch->bytes + batch->used;

	if (len > sizeof(batch->bytes) - batch->used)
		return NULL;
	batch->used += len;
	return at;
}

struct mt_batch_event *mt_batch_event(struct mt_batch *batch)
{
	struct mt_batch_event *event = take(batch, sizeof(*event));

	if (event)
		event->tag = TAG_EVENT;
	return event;
}

struct mt_batch_node *mt_batch_node(struct mt_batch *batch)
{
	struct mt_batch_node *node = take(batch, sizeof(*node));

	if (node)
		node->tag = TAG_NODE;
	return node;
}

/* Room for a record of len bytes, behind its item. */
static int reserve(struct mt_batch *batch, enum mt_batch_kind kind, size_t len, char **ret)
{
	struct item *item;

	len = (sizeof(*item) + len + 7) & ~(size_t)7;
	item = take(batch, len);
	if (!item)
		return len > sizeof(batch->bytes) ? -EMSGSIZE : -ENOSPC;
	*item = (struct item){ .kind = (uint8_t)kind, .bytes = (uint32_t)len };
	*ret = (char *)(item + 1);
	return 0;
}

static int append(struct mt_batch *batch, enum mt_batch_kind kind, const void *fixed,
		  size_t fixed_len, const struct tail *tails, size_t n_tails)
{
	size_t len = fixed_len;
	char *at;
	int r;

	for (size_t i = 0; i < n_tails; i++)
		len += tails[i].len;
	r = reserve(batch, kind, len, &at);
	if (r < 0)
		return r;
	memcpy(at, fixed, fixed_len);
	at += fixed_len;
	for (size_t i = 0; i < n_tails; i++) {
		if (tails[i].len)
			memcpy(at, tails[i].bytes, tails[i].len);
		at += tails[i].len;
	}
	return 0;
}

static struct tail string(const char *s)
{
	return (struct tail){ .bytes = s ? s : "", .len = s ? strlen(s) + 1 : 1 };
}

static int append_module(struct mt_batch *batch, const struct mt_module *module)
{
	const struct tail tails[] = { string(module->path),
				      { module->build_id, module->build_id_bytes } };

	return append(batch, MT_BATCH_MODULE, module, sizeof(*module), tails, 2);
}

static int append_symbols(struct mt_batch *batch, const struct mt_module_symbols *symbols)
{
	size_t array = symbols->len * sizeof(*symbols->symbols);
	size_t len = sizeof(*symbols) + array;
	struct mt_symbol *list;
	char *at;
	int r;

	for (uint32_t i = 0; i < symbols->len; i++)
		len += string(symbols->symbols[i].name).len;
	r = reserve(batch, MT_BATCH_SYMBOLS, len, &at);
	if (r < 0)
		return r;
	memcpy(at, symbols, sizeof(*symbols));
	list = (struct mt_symbol *)(at + sizeof(*symbols));
	at += sizeof(*symbols) + array;
	for (uint32_t i = 0; i < symbols->len; i++) {
		struct tail name = string(symbols->symbols[i].name);

		list[i] = symbols->symbols[i];
		list[i].name = memcpy(at, name.bytes, name.len);
		at += name.len;
	}
	return 0;
}

static int append_process(struct mt_batch *batch, const struct mt_process *process)
{
	const struct tail tails[] = { string(process->exe), string(process->name) };

	return append(batch, MT_BATCH_PROCESS, process, sizeof(*process), tails, 2);
}

static int append_thread(struct mt_batch *batch, const struct mt_thread_info *thread)
{
	const struct tail tails[] = { string(thread->name) };

	return append(batch, MT_BATCH_THREAD, thread, sizeof(*thread), tails, 1);
}

static int append_not_tracked(struct mt_batch *batch, const struct mt_not_tracked *what)
{
	const struct tail tails[] = { string(what->what), string(what->reason) };

	return append(batch, MT_BATCH_NOT_TRACKED, what, sizeof(*what), tails, 2);
}

static int append_mappings(struct mt_batch *batch, const struct mt_mappings *mappings)
{
	const struct tail tails[] = {
		{ mappings->mappings, mappings->len * sizeof(*mappings->mappings) },
	};

	return append(batch, MT_BATCH_MAPPINGS, mappings, sizeof(*mappings), tails, 1);
}

static int append_kept_stack(struct mt_batch *batch, const struct mt_kept_stack *stack)
{
	const struct tail tails[] = { { stack->words, stack->end - stack->start } };

	return append(batch, MT_BATCH_KEPT_STACK, stack, sizeof(*stack), tails, 1);
}

int mt_batch_add(struct mt_batch *batch, enum mt_batch_kind kind, const void *record)
{
	switch (kind) {
	case MT_BATCH_EVENT:
		return append(batch, kind, record, sizeof(struct mt_event), NULL, 0);
	case MT_BATCH_MODULE:
		return append_module(batch, record);
	case MT_BATCH_SYMBOLS:
		return append_symbols(batch, record);
	case MT_BATCH_PROCESS:
		return append_process(batch, record);
	case MT_BATCH_PROCESS_END:
		return append(batch, kind, record, sizeof(struct mt_process_end), NULL, 0);
	case MT_BATCH_THREAD:
		return append_thread(batch, record);
	case MT_BATCH_NOT_TRACKED:
		return append_not_tracked(batch, record);
	case MT_BATCH_MAPPINGS:
		return append_mappings(batch, record);
	case MT_BATCH_KEPT_STACK:
		return append_kept_stack(batch, record);
	}
	return -EINVAL;
}

static int write_event(struct mt_writer *writer, const struct mt_batch_event *at)
{
	const struct mt_event event = {
		.time_ns = at->time_ns,
		.address = at->address,
		.size = at->size,
		.thread = at->thread,
		.node = at->node,
		.type = at->type,
		.function = at->function,
	};

	return mt_writer_event(writer, &event);
}

static int write_node(struct mt_writer *writer, const struct mt_batch_node *at)
{
	const struct mt_node node = {
		.id = at->id,
		.parent = at->parent,
		.module = at->module,
		.offset = at->offset,
		.exact = at->exact,
	};

	return mt_writer_node(writer, &node);
}

static int write_module(struct mt_writer *writer, const void *fixed)
{
	struct mt_module module = *(const struct mt_module *)fixed;

	module.path = (const char *)fixed + sizeof(module);
	module.build_id = (const uint8_t *)module.path + strlen(module.path) + 1;
	return mt_writer_module(writer, &module);
}

static int write_symbols(struct mt_writer *writer, const void *fixed)
{
	struct mt_module_symbols symbols = *(const struct mt_module_symbols *)fixed;

	symbols.symbols = (const void *)((const char *)fixed + sizeof(symbols));
	return mt_writer_symbols(writer, &symbols);
}

static int write_process(struct mt_writer *writer, const void *fixed)
{
	struct mt_process process = *(const struct mt_process *)fixed;

	process.exe = (const char *)fixed + sizeof(process);
	process.name = process.exe + strlen(process.exe) + 1;
	return mt_writer_process(writer, &process);
}

static int write_thread(struct mt_writer *writer, const void *fixed)
{
	struct mt_thread_info thread = *(const struct mt_thread_info *)fixed;

	thread.name = (const char *)fixed + sizeof(thread);
	return mt_writer_thread(writer, &thread);
}

static int write_not_tracked(struct mt_writer *writer, const void *fixed)
{
	struct mt_not_tracked what = *(const struct mt_not_tracked *)fixed;

	what.what = (const char *)fixed + sizeof(what);
	what.reason = what.what + strlen(what.what) + 1;
	return mt_writer_not_tracked(writer, &what);
}

static int write_mappings(struct mt_writer *writer, const void *fixed)
{
	struct mt_mappings mappings = *(const struct mt_mappings *)fixed;

	mappings.mappings = (const void *)((const char *)fixed + sizeof(mappings));
	return mt_writer_mappings(writer, &mappings);
}

static int write_kept_stack(struct mt_writer *writer, const void *fixed)
{
	struct mt_kept_stack stack = *(const struct mt_kept_stack *)fixed;

	stack.words = (const void *)((const char *)fixed + sizeof(stack));
	return mt_writer_kept_stack(writer, &stack);
}

static int write_item(struct mt_writer *writer, const struct item *item)
{
	const void *fixed = item + 1;

	switch ((enum mt_batch_kind)item->kind) {
	case MT_BATCH_EVENT:
		return mt_writer_event(writer, fixed);
	case MT_BATCH_MODULE:
		return write_module(writer, fixed);
	case MT_BATCH_SYMBOLS:
		return write_symbols(writer, fixed);
	case MT_BATCH_PROCESS:
		return write_process(writer, fixed);
	case MT_BATCH_PROCESS_END:
		return mt_writer_process_end(writer, fixed);
	case MT_BATCH_THREAD:
		return write_thread(writer, fixed);
	case MT_BATCH_NOT_TRACKED:
		return write_not_tracked(writer, fixed);
	case MT_BATCH_MAPPINGS:
		return write_mappings(writer, fixed);
	case MT_BATCH_KEPT_STACK:
		return write_kept_stack(writer, fixed);
	}
	return -EINVAL;
}

int mt_batch_write(const struct mt_batch *batch, struct mt_writer *writer)
{
	size_t at = 0;
	int r = 0;

	while (at < batch->used && r >= 0) {
		const void *record = batch->bytes + at;

		switch (*(const uint8_t *)record) {
		case TAG_EVENT:
			r = write_event(writer, record);
			at += sizeof(struct mt_batch_event);
			break;
		case TAG_NODE:
			r = write_node(writer, record);
			at += sizeof(struct mt_batch_node);
			break;
		default:
			r = write_item(writer, record);
			at += ((const struct item *)record)->bytes;
			break;
		}
	}
	return r < 0 ? r : 0;
}
