/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind.c - see unwind.h for the contract
 *
 * Invariants
 *   - A frame of the fast loop is (pc, sp, rbp_at): rbp is known by the place where it is
 *     saved, and read only where a rule needs it.
 *   - All that the fast loop decides, the full evaluator (collector/unwind_full.h) decides
 *     alike; a chain is one of either, never of both.
 *   - What the cache says of an address is true under its stamp (collector/space.h).
 */
#include "collector/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/frame_pointer.h"
#include "wire/reference.h"

/* A run touches up to some 7,000 distinct addresses. */
#define CACHE_BITS 14
#define CACHE_LEN (1U << CACHE_BITS)
#define GOLDEN 0x9e3779b97f4a7c15ULL

struct cached {
	uint64_t lookup; /* pc - 1 */
	uint64_t stamp;	 /* 0: free */
	uint64_t bias;
	uint32_t module;
	struct mt_fast_row row;
};

struct mt_unwinder {
	struct mt_unwind_full full;
	struct mt_trace trace;
	struct cached cache[CACHE_LEN];
};

int mt_unwinder_new(struct mt_unwinder **ret)
{
	struct mt_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return -ENOMEM;
	*ret = unwinder;
	return 0;
}

void mt_unwinder_free(struct mt_unwinder *unwinder)
{
	if (!unwinder)
		return;
	mt_unwind_full_done(&unwinder->full);
	free(unwinder);
}

static __attribute__((noinline)) void fill(struct cached *cached, const struct mt_space *space,
					   uint64_t lookup)
{
	const struct mt_space_range *range = mt_space_find(space, lookup);
	struct mt_cfi_row row;
	int r = -ENOENT;

	cached->lookup = lookup;
	cached->stamp = space->stamp;
	cached->bias = range ? range->bias : 0;
	cached->module = range ? range->module : MT_NO_MODULE;
	if (!range) {
		cached->row = (struct mt_fast_row){ .kind = MT_FAST_NO_MODULE };
		return;
	}
	if (range->image)
		r = mt_cfi_find(&range->image->cfi, lookup - range->bias, &row);
	if (r == 0)
		cached->row = mt_cfi_fast(&row);
	else
		cached->row = (struct mt_fast_row){
			.kind = r == -ENOENT ? MT_FAST_NO_CFI : MT_FAST_BAD,
		};
}

static inline const struct cached *look_up(struct mt_unwinder *unwinder,
					   const struct mt_space *space, uint64_t lookup)
{
	uint64_t hash = (lookup ^ space->stamp << 40) * GOLDEN;
	struct cached *cached = &unwinder->cache[hash >> (64 - CACHE_BITS)];

	if (__builtin_expect(cached->lookup != lookup || cached->stamp != space->stamp, 0))
		fill(cached, space, lookup);
	return cached;
}

/* The state of the fast loop: a frame. */
struct fast {
	uint64_t pc, sp;
	uint64_t rbp_at;
	bool linked; /* the frame below was left by its frame pointer */
};

static enum mt_stop step_by_frame_pointer(const struct mt_space *space,
					  const struct mt_window *window, enum mt_fast_kind kind,
					  struct fast *fast)
{
	enum mt_stop otherwise = kind == MT_FAST_NO_CFI ? MT_STOP_NO_CFI : MT_STOP_NO_MODULE;
	struct mt_frame_pointer_caller caller;
	enum mt_stop stop;
	uint64_t rbp;

	if (!mt_window_read(window, fast->rbp_at, &rbp))
		return mt_window_missing(window, fast->rbp_at) == MT_STOP_TRUNCATED
			       ? MT_STOP_TRUNCATED
			       : otherwise;
	stop = mt_frame_pointer_follow(space, window, fast->sp, rbp, fast->linked, otherwise,
				       &caller);
	if (stop == MT_STOP_NONE)
		*fast = (struct fast){ caller.pc, caller.sp, caller.rbp_at, true };
	return stop;
}

/* The CFA, and where the caller's rbp is. */
static inline enum mt_stop find_cfa(const struct mt_window *window, struct mt_fast_row row,
				    struct fast *fast, uint64_t *ret)
{
	uint64_t cfa, rbp, at;

	if (__builtin_expect(row.kind == MT_FAST_RSP, 1)) {
		cfa = fast->sp + 8 * (uint64_t)row.cfa;
	} else {
		if (!mt_window_read(window, fast->rbp_at, &rbp))
			return mt_window_missing(window, fast->rbp_at);
		cfa = rbp + 8 * (uint64_t)row.cfa;
		if (row.kind == MT_FAST_CFA_AT_RBP) {
			at = cfa;
			if (!mt_window_read(window, at, &cfa))
				return mt_window_missing(window, at);
			fast->rbp_at = rbp;
		}
		if (cfa <= fast->sp)
			return MT_STOP_BAD;
	}
	if (row.rbp)
		fast->rbp_at = cfa + 8 * (uint64_t)row.rbp;
	*ret = cfa;
	return MT_STOP_NONE;
}

static inline enum mt_stop step_by_row(const struct mt_window *window, struct mt_fast_row row,
				       struct fast *fast)
{
	uint64_t cfa;
	enum mt_stop stop;

	stop = find_cfa(window, row, fast, &cfa);
	if (__builtin_expect(stop != MT_STOP_NONE, 0))
		return stop;
	if (!mt_window_read(window, cfa - 8, &fast->pc))
		return mt_window_missing(window, cfa - 8);
	fast->sp = cfa;
	fast->linked = false;
	return MT_STOP_NONE;
}

/* MT_STOP_NONE: a frame is there that is the full evaluator's. */
static enum mt_stop walk_up(struct mt_unwinder *unwinder, const struct mt_space *space,
			    const struct mt_window *window)
{
	struct mt_trace *trace = &unwinder->trace;
	struct fast fast = {
		.sp = window->start + 8 * MT_SAVED_WORDS,
		.rbp_at = window->start + 8 * MT_SAVED_RBP,
	};
	const struct cached *cached;
	enum mt_stop stop;

	trace->len = 0;
	if (!mt_window_read(window, window->start + 8 * MT_SAVED_RIP, &fast.pc))
		return MT_STOP_TRUNCATED;
	if (!fast.pc)
		return MT_STOP_BAD;
	while (fast.pc) {
		if (trace->len == MT_TRACE_FRAMES)
			return MT_STOP_DEPTH;
		cached = look_up(unwinder, space, fast.pc - 1);
		trace->frames[trace->len++] = (struct mt_frame){
			.offset = fast.pc - cached->bias,
			.module = cached->module,
		};
		switch ((enum mt_fast_kind)cached->row.kind) {
		case MT_FAST_RSP:
		case MT_FAST_RBP:
		case MT_FAST_CFA_AT_RBP:
			stop = step_by_row(window, cached->row, &fast);
			break;
		case MT_FAST_NO_CFI:
		case MT_FAST_NO_MODULE:
			stop = step_by_frame_pointer(space, window, cached->row.kind, &fast);
			break;
		case MT_FAST_END:
			return MT_STOP_END;
		case MT_FAST_FULL:
			return MT_STOP_NONE;
		default:
			return MT_STOP_BAD;
		}
		if (__builtin_expect(stop != MT_STOP_NONE, 0))
			return stop;
	}
	return MT_STOP_END;
}

int mt_unwind_trace(struct mt_unwinder *unwinder, const struct mt_space *space,
		    const struct mt_window *window, const struct mt_trace **ret)
{
	struct mt_trace *trace = &unwinder->trace;
	int r;

	trace->stop = walk_up(unwinder, space, window);
	if (trace->stop == MT_STOP_NONE) {
		r = mt_unwind_full(&unwinder->full, space, window, trace);
		if (r < 0)
			return r;
	}
	*ret = trace;
	return 0;
}

int mt_unwind(struct mt_unwinder *unwinder, const struct mt_space *space,
	      const struct mt_window *window, struct mt_call_tree *tree, uint32_t *ret_node)
{
	const struct mt_trace *trace;
	uint32_t node;
	int r;

	r = mt_unwind_trace(unwinder, space, window, &trace);
	if (r < 0)
		return r;
	node = trace->stop;
	for (size_t i = trace->len; i-- > 0;) {
		r = mt_call_tree_child(tree, node, &trace->frames[i], &node);
		if (r < 0)
			return r;
	}
	*ret_node = node;
	return 0;
}
