/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * verify.c - see verify.h for the contract
 *
 * Invariants
 *   - spaces[i] is what the mappings with the id i are, modules[i] the module i, nodes[i] the
 *     node MT_NODE_FIRST + i: the reader delivers ids without gaps.
 *   - A mapping that the recording had no file for has no image here either, whatever lies
 *     at its path now: its chains are those that can be made without.
 */
#include "report/verify.h"

#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/build_id.h"
#include "base/cleanup.h"
#include "collector/images.h"
#include "collector/unwind.h"
#include "collector/vdso.h"
#include "report/grow.h"
#include "report/printable.h"
#include "report/run.h"
#include "wire/ring.h"
#include "wire/stack_delta.h"

#define RING_WORDS (MT_BUDGET_MAX_BYTES / 8)

struct module {
	char *path;
	uint8_t *build_id;
	uint32_t build_id_bytes;
	uint32_t flags;
	struct mt_image *image;
	const char *problem; /* why there is no image, once it was looked for */
	int looked_for;
	int missed; /* by a chain */
};

struct verifier {
	FILE *out;
	struct mt_verified *result;
	uint64_t named;
	uint32_t budget_bytes;

	struct module *modules;
	size_t modules_len, modules_room;
	struct mt_node *nodes;
	size_t nodes_len, nodes_room;
	uint32_t *tids; /* by thread; [0] is nobody's */
	size_t tids_room;
	struct mt_space *spaces;
	size_t spaces_len, spaces_room;

	struct mt_images *images;
	struct mt_unwinder *unwinder;
	uint64_t ring[RING_WORDS]; /* the window that is looked at, as window.h has it */
};

static int on_header(void *ctx, const struct mt_header *header)
{
	struct verifier *v = ctx;

	v->budget_bytes = header->budget_bytes;
	return 0;
}

static int on_module(void *ctx, const struct mt_module *module)
{
	struct verifier *v = ctx;
	struct module *mine;
	int err = mt_grow(&v->modules, &v->modules_room, v->modules_len + 1, sizeof(*v->modules));

	if (err)
		return err;
	mine = &v->modules[v->modules_len++];
	mine->flags = module->flags;
	mine->path = strdup(module->path);
	mine->build_id = malloc(module->build_id_bytes + 1);
	if (!mine->path || !mine->build_id)
		return -ENOMEM;
	if (module->build_id_bytes)
		memcpy(mine->build_id, module->build_id, module->build_id_bytes);
	mine->build_id_bytes = module->build_id_bytes;
	return 0;
}

static int on_node(void *ctx, const struct mt_node *node)
{
	struct verifier *v = ctx;
	int err = mt_grow(&v->nodes, &v->nodes_room, v->nodes_len + 1, sizeof(*v->nodes));

	if (!err)
		v->nodes[v->nodes_len++] = *node;
	return err;
}

static int on_thread(void *ctx, const struct mt_thread_info *thread)
{
	struct verifier *v = ctx;
	int err = mt_grow(&v->tids, &v->tids_room, thread->id + 1UL, sizeof(*v->tids));

	if (!err)
		v->tids[thread->id] = thread->tid;
	return err;
}

static int is_build_id(const struct module *module, const struct mt_image *image)
{
	/* Nothing was recorded that could be compared. */
	if (!module->build_id_bytes)
		return 1;
	return mt_build_id_equal(module->build_id, module->build_id_bytes, image->build_id,
				 image->build_id_bytes);
}

/* Finds the module's image, or why there is none. */
static int look_for(struct verifier *v, struct module *module)
{
	struct mt_image *image = NULL;
	int r;

	module->looked_for = 1;
	if (module->flags & MT_MODULE_VDSO)
		r = mt_vdso_image(&image);
	else
		r = mt_images_get_path(v->images, module->path, &image);
	if (r == -ENOMEM)
		return r;
	if (!image) {
		module->problem = r == -ENOENT	 ? "is not there any more"
				  : r == -EINVAL ? "is not a file"
						 : "can not be read";
		return 0;
	}
	if (!is_build_id(module, image)) {
		mt_image_unref(image);
		module->problem = "is not the file that was recorded (other build-id)";
		return 0;
	}
	module->image = image;
	return 0;
}

static int add_mapping(struct verifier *v, struct mt_space *space, const struct mt_mapping *mapping)
{
	struct module *module = &v->modules[mapping->module];
	struct mt_space_range range = {
		.start = mapping->start,
		.end = mapping->end,
		.bias = mapping->bias,
		.module = mapping->module,
	};

	if (mapping->flags & MT_MAPPING_FOUND) {
		int err = module->looked_for ? 0 : look_for(v, module);

		if (err)
			return err;
		range.image = module->image;
	}
	return mt_space_add(space, &range);
}

static int on_mappings(void *ctx, const struct mt_mappings *mappings)
{
	struct verifier *v = ctx;
	int err = 0;

	if (mappings->id == v->spaces_len) {
		err = mt_grow(&v->spaces, &v->spaces_room, v->spaces_len + 1, sizeof(*v->spaces));
		if (err)
			return err;
		mt_space_init(&v->spaces[v->spaces_len++]);
	}
	for (uint32_t i = 0; i < mappings->len && !err; i++)
		err = add_mapping(v, &v->spaces[mappings->id], &mappings->mappings[i]);
	return err;
}

/* By the definition of wire/digest.h, from the words alone: group by group, or of a raw window
 * block by block. */
static uint64_t digest_of(const struct mt_kept_stack *stack, uint32_t budget_bytes)
{
	bool raw = stack->flags & MT_KEPT_RAW;
	uint64_t base = raw ? stack->start : stack->start & ~(uint64_t)(MT_GROUP_BYTES - 1);
	uint64_t sum = 0;

	for (; base < stack->end; base += MT_GROUP_BYTES) {
		uint64_t words[MT_GROUP_WORDS] = { 0 };
		uint64_t r = raw ? (base - stack->start) / MT_GROUP_BYTES
				 : base / MT_GROUP_BYTES & (budget_bytes / MT_GROUP_BYTES - 1);

		for (size_t i = 0; i < MT_GROUP_WORDS; i++) {
			uint64_t at = base + 8 * i;

			if (at >= stack->start && at < stack->end)
				words[i] = htole64(stack->words[(at - stack->start) / 8]);
		}
		sum += mt_digest_part(XXH64(words, sizeof(words), 0), r);
	}
	return mt_digest_finish(stack->start, stack->end, stack->epoch, sum);
}

static const struct mt_node *node_of(const struct verifier *v, uint32_t id)
{
	return id < MT_NODE_FIRST ? NULL : &v->nodes[id - MT_NODE_FIRST];
}

/* Notes that a chain comes through the module; whether it should have a file and has none. */
static int misses(struct verifier *v, uint32_t id)
{
	struct module *module = id == MT_NO_MODULE ? NULL : &v->modules[id];

	if (!module || !module->problem)
		return 0;
	module->missed = 1;
	return 1;
}

static int misses_any(struct verifier *v, uint32_t id, const struct mt_trace *trace)
{
	const struct mt_node *node;
	int missing = 0;

	for (size_t i = 0; i < trace->len; i++)
		missing |= misses(v, trace->frames[i].module);
	for (node = node_of(v, id); node; node = node_of(v, node->parent))
		missing |= misses(v, node->module);
	return missing;
}

static int is_frame(const struct mt_node *node, const struct mt_frame *frame)
{
	return node->module == frame->module && node->offset == frame->offset &&
	       node->exact == frame->exact;
}

/* How many frames are the same, and the recorded node behind them. */
static size_t same_frames(const struct verifier *v, uint32_t *id, const struct mt_trace *trace)
{
	const struct mt_node *node = node_of(v, *id);
	size_t n = 0;

	while (node && n < trace->len && is_frame(node, &trace->frames[n])) {
		*id = node->parent;
		node = node_of(v, *id);
		n++;
	}
	return n;
}

/* Begins a line about the last stack; 0: enough were named. */
static int name_stack(struct verifier *v, const struct mt_kept_stack *stack)
{
	if (v->named++ >= MT_VERIFY_NAMED)
		return 0;
	fprintf(v->out,
		"stack %" PRIu64 ", thread %" PRIu32 " (tid %" PRIu32 "): ", v->result->stacks,
		stack->thread, v->tids[stack->thread]);
	return 1;
}

static void print_frame(const struct verifier *v, uint32_t module, uint64_t offset, uint32_t exact)
{
	if (module == MT_NO_MODULE) {
		fprintf(v->out, "0x%" PRIx64, offset);
	} else {
		mt_printable_write(v->out, v->modules[module].path);
		fprintf(v->out, "+0x%" PRIx64, offset);
	}
	fputs(exact ? " (exact)" : "", v->out);
}

/* id: the recorded node behind the n frames that are the same. */
static void name_chain(struct verifier *v, const struct mt_kept_stack *stack, uint32_t id,
		       const struct mt_trace *trace, size_t n)
{
	const struct mt_node *node = node_of(v, id);

	if (!name_stack(v, stack))
		return;
	fprintf(v->out, "frame %zu is ", n + 1);
	if (n < trace->len)
		print_frame(v, trace->frames[n].module, trace->frames[n].offset,
			    trace->frames[n].exact);
	else
		fprintf(v->out, "the end (%s)", mt_run_stop_name(trace->stop));
	fputs(", recorded was ", v->out);
	if (node)
		print_frame(v, node->module, node->offset, node->exact);
	else
		fprintf(v->out, "the end (%s)", mt_run_stop_name(id));
	fputc('\n', v->out);
}

static void verify_hash(struct verifier *v, const struct mt_kept_stack *stack)
{
	uint64_t digest = digest_of(stack, v->budget_bytes);

	if (digest == stack->digest)
		v->result->hashes_right++;
	else if (name_stack(v, stack))
		fprintf(v->out,
			"the %" PRIu64 " bytes at 0x%" PRIx64 " hash to %016" PRIx64
			", recorded was %016" PRIx64 "\n",
			stack->end - stack->start, stack->start, digest, stack->digest);
}

static int verify_chain(struct verifier *v, const struct mt_kept_stack *stack)
{
	struct mt_window window = {
		.start = stack->start,
		.end = stack->end,
		.words = v->ring,
		.mask = RING_WORDS - 1,
		.bottom = stack->flags & MT_KEPT_BOTTOM,
	};
	const struct mt_trace *trace;
	uint32_t id = stack->node;
	size_t n;
	int err;

	for (uint64_t at = stack->start; at < stack->end; at += 8)
		v->ring[at / 8 & (RING_WORDS - 1)] = stack->words[(at - stack->start) / 8];
	err = mt_unwind_trace(v->unwinder, &v->spaces[stack->mappings], &window, &trace);
	if (err)
		return err;
	if (misses_any(v, id, trace)) {
		v->result->not_checkable++;
		return 0;
	}
	n = same_frames(v, &id, trace);
	if (n == trace->len && id == (uint32_t)trace->stop) {
		v->result->chains_equal++;
		return 0;
	}
	v->result->chains_different++;
	name_chain(v, stack, id, trace, n);
	return 0;
}

static int on_kept_stack(void *ctx, const struct mt_kept_stack *stack)
{
	struct verifier *v = ctx;

	if (v->budget_bytes < MT_BUDGET_MIN_BYTES || v->budget_bytes > MT_BUDGET_MAX_BYTES ||
	    v->budget_bytes & (v->budget_bytes - 1) ||
	    !mt_window_valid(stack->start, stack->end, v->budget_bytes))
		return -EPROTO;
	v->result->stacks++;
	verify_hash(v, stack);
	return verify_chain(v, stack);
}

static void print_counts(const struct verifier *v)
{
	const struct mt_verified *n = v->result;

	if (v->named > MT_VERIFY_NAMED)
		fprintf(v->out, "and %" PRIu64 " more\n", v->named - MT_VERIFY_NAMED);
	fprintf(v->out,
		"stacks            %" PRIu64 "\n"
		"hashes right      %" PRIu64 "\n"
		"hashes wrong      %" PRIu64 "\n"
		"chains equal      %" PRIu64 "\n"
		"chains different  %" PRIu64 "\n"
		"not checkable     %" PRIu64 "\n",
		n->stacks, n->hashes_right, n->stacks - n->hashes_right, n->chains_equal,
		n->chains_different, n->not_checkable);
	for (size_t i = 0; i < v->modules_len; i++) {
		if (!v->modules[i].missed)
			continue;
		fputs("  through ", v->out);
		mt_printable_write(v->out, v->modules[i].path);
		fprintf(v->out, ", which %s\n", v->modules[i].problem);
	}
}

static void done(struct verifier *v)
{
	for (size_t i = 0; i < v->spaces_len; i++)
		mt_space_done(&v->spaces[i]);
	free(v->spaces);
	for (size_t i = 0; i < v->modules_len; i++) {
		mt_image_unref(v->modules[i].image);
		free(v->modules[i].path);
		free(v->modules[i].build_id);
	}
	free(v->modules);
	free(v->nodes);
	free(v->tids);
	mt_unwinder_free(v->unwinder);
	mt_images_free(v->images);
	free(v);
}

static void donep(struct verifier **v)
{
	if (*v)
		done(*v);
}

int mt_verify_stacks(int fd, FILE *out, struct mt_verified *ret)
{
	static const struct mt_reader_callbacks callbacks = {
		.header = on_header,
		.module = on_module,
		.node = on_node,
		.thread = on_thread,
		.mappings = on_mappings,
		.kept_stack = on_kept_stack,
	};
	mt_cleanup(donep) struct verifier *v = calloc(1, sizeof(*v));
	int err;

	*ret = (struct mt_verified){ 0 };
	if (!v)
		return -ENOMEM;
	v->out = out;
	v->result = ret;
	err = mt_images_new(&v->images);
	if (!err)
		err = mt_unwinder_new(&v->unwinder);
	if (!err)
		err = mt_reader_read(fd, &callbacks, v, &ret->reader);
	if (!err && ret->stacks)
		print_counts(v);
	return err;
}
