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
 *   - A step has every word that the fast loop read at its frame; of what only the frame
 *     pointer's test may read, more.  The memo (collector/memo.h) knows no chain of the full
 *     evaluator.
 */
#include "collector/unwind.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/frame_pointer.h"
#include "collector/memo.h"
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

/* Whether a call returns to the address behind a cached one; asked for few. */
enum is_return { RETURN_UNKNOWN, RETURN_NO, RETURN_YES };

struct mt_unwinder {
	struct mt_unwind_full full;
	struct mt_memo *memo;
	const struct mt_call_tree *tree; /* what the memo's nodes are of */
	struct mt_unwinder_counts counts;
	struct mt_trace trace;
	struct mt_memo_step steps[MT_TRACE_FRAMES]; /* of the trace's frames */
	struct cached cache[CACHE_LEN];
	uint8_t returns[CACHE_LEN]; /* enum is_return, of the cache's entries */
};

int mt_unwinder_new(struct mt_unwinder **ret)
{
	mt_cleanup(mt_unwinder_freep) struct mt_unwinder *unwinder = calloc(1, sizeof(*unwinder));
	int r;

	if (!unwinder)
		return -ENOMEM;
	r = mt_memo_new(&unwinder->memo);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(unwinder);
	return 0;
}

void mt_unwinder_free(struct mt_unwinder *unwinder)
{
	if (!unwinder)
		return;
	mt_unwind_full_done(&unwinder->full);
	mt_memo_free(unwinder->memo);
	free(unwinder);
}

void mt_unwinder_counts(const struct mt_unwinder *unwinder, struct mt_unwinder_counts *ret)
{
	*ret = unwinder->counts;
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

	if (__builtin_expect(cached->lookup != lookup || cached->stamp != space->stamp, 0)) {
		fill(cached, space, lookup);
		unwinder->returns[cached - unwinder->cache] = RETURN_UNKNOWN;
	}
	return cached;
}

static bool is_return(struct mt_unwinder *unwinder, const struct mt_space *space, uint64_t pc)
{
	uint8_t *known = &unwinder->returns[look_up(unwinder, space, pc - 1) - unwinder->cache];

	if (*known == RETURN_UNKNOWN)
		*known = mt_frame_pointer_is_return(space, pc) ? RETURN_YES : RETURN_NO;
	return *known == RETURN_YES;
}

/* The fast loop, at a frame. */
struct fast {
	const struct mt_space *space;
	const struct mt_window *window;
	uint64_t pc, sp;
	uint64_t rbp_at;
	bool linked; /* the frame below was left by its frame pointer */
	bool tied;   /* as of mt_memo_learn() */
};

/* rbp's value at the frame. */
static inline bool read_rbp(struct fast *fast, struct mt_memo_step *step)
{
	step->uses_rbp = mt_window_read(fast->window, fast->rbp_at, &step->rbp);
	fast->tied |= !step->uses_rbp;
	return step->uses_rbp;
}

static enum mt_stop step_by_frame_pointer(struct mt_unwinder *unwinder, struct fast *fast,
					  enum mt_fast_kind kind, struct mt_memo_step *step)
{
	enum mt_stop otherwise = kind == MT_FAST_NO_CFI ? MT_STOP_NO_CFI : MT_STOP_NO_MODULE;
	struct mt_frame_pointer_caller caller;
	enum mt_stop stop;
	uint64_t word;

	if (!read_rbp(fast, step))
		return mt_window_missing(fast->window, fast->rbp_at) == MT_STOP_TRUNCATED
			       ? MT_STOP_TRUNCATED
			       : otherwise;
	if (mt_window_read(fast->window, step->rbp + 8, &word))
		step->at[0] = step->rbp + 8;
	stop = mt_frame_pointer_follow(fast->window, fast->sp, step->rbp, fast->linked, otherwise,
				       &caller);
	if (stop != MT_STOP_NONE)
		return stop;
	if (!is_return(unwinder, fast->space, caller.pc))
		return otherwise;
	fast->pc = caller.pc;
	fast->sp = caller.sp;
	fast->rbp_at = caller.rbp_at;
	fast->linked = true;
	step->saves_rbp = true;
	step->rbp_at = caller.rbp_at;
	return MT_STOP_NONE;
}

/* The CFA, and where the caller's rbp is. */
static inline enum mt_stop find_cfa(struct fast *fast, struct mt_fast_row row,
				    struct mt_memo_step *step, uint64_t *ret)
{
	uint64_t cfa, at;

	if (__builtin_expect(row.kind == MT_FAST_RSP, 1)) {
		cfa = fast->sp + 8 * (uint64_t)row.cfa;
	} else {
		if (!read_rbp(fast, step))
			return mt_window_missing(fast->window, fast->rbp_at);
		cfa = step->rbp + 8 * (uint64_t)row.cfa;
		if (row.kind == MT_FAST_CFA_AT_RBP) {
			at = cfa;
			if (!mt_window_read(fast->window, at, &cfa)) {
				fast->tied = true;
				return mt_window_missing(fast->window, at);
			}
			step->at[1] = at;
			step->saves_rbp = true;
			step->rbp_at = fast->rbp_at = step->rbp;
		}
		if (cfa <= fast->sp)
			return MT_STOP_BAD;
	}
	if (row.rbp) {
		step->saves_rbp = true;
		step->rbp_at = fast->rbp_at = cfa + 8 * (uint64_t)row.rbp;
	}
	*ret = cfa;
	return MT_STOP_NONE;
}

static inline enum mt_stop step_by_row(struct fast *fast, struct mt_fast_row row,
				       struct mt_memo_step *step)
{
	uint64_t cfa;
	enum mt_stop stop;

	stop = find_cfa(fast, row, step, &cfa);
	if (__builtin_expect(stop != MT_STOP_NONE, 0))
		return stop;
	if (!mt_window_read(fast->window, cfa - 8, &fast->pc))
		return mt_window_missing(fast->window, cfa - 8);
	step->at[0] = cfa - 8;
	fast->sp = cfa;
	fast->linked = false;
	return MT_STOP_NONE;
}

static inline void begin_step(const struct fast *fast, struct mt_memo_step *step)
{
	*step = (struct mt_memo_step){
		.pc = fast->pc,
		.sp = fast->sp,
		.at = { MT_MEMO_NOWHERE, MT_MEMO_NOWHERE },
		.linked = fast->linked,
	};
}

/*
 * Walks up to where the chain ends, or to where it goes on as one that the memo knows, if
 * there is a memo.  Returns the node of what is outside of the trace's frames, an enum
 * mt_stop if nothing is; MT_STOP_NONE: there is a frame that is the full evaluator's.
 */
static uint32_t walk_up(struct mt_unwinder *unwinder, struct fast *fast, struct mt_memo *memo)
{
	struct mt_trace *trace = &unwinder->trace;
	const struct cached *cached;
	struct mt_memo_step *step;
	enum mt_stop stop;
	uint32_t node;

	trace->len = 0;
	fast->sp = fast->window->start + 8 * MT_SAVED_WORDS;
	fast->rbp_at = fast->window->start + 8 * MT_SAVED_RBP;
	if (!mt_window_read(fast->window, fast->window->start + 8 * MT_SAVED_RIP, &fast->pc))
		return MT_STOP_TRUNCATED;
	if (!fast->pc)
		return MT_STOP_BAD;
	while (fast->pc) {
		if (trace->len == MT_TRACE_FRAMES)
			return MT_STOP_DEPTH;
		step = &unwinder->steps[trace->len];
		begin_step(fast, step);
		if (memo && mt_memo_join(memo, fast->window, step, fast->rbp_at, &node))
			return node;
		cached = look_up(unwinder, fast->space, fast->pc - 1);
		trace->frames[trace->len++] = (struct mt_frame){
			.offset = fast->pc - cached->bias,
			.module = cached->module,
		};
		switch ((enum mt_fast_kind)cached->row.kind) {
		case MT_FAST_RSP:
		case MT_FAST_RBP:
		case MT_FAST_CFA_AT_RBP:
			stop = step_by_row(fast, cached->row, step);
			break;
		case MT_FAST_NO_CFI:
		case MT_FAST_NO_MODULE:
			stop = step_by_frame_pointer(unwinder, fast, cached->row.kind, step);
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
	struct fast fast = { .space = space, .window = window };
	struct mt_trace *trace = &unwinder->trace;
	int r;

	trace->stop = walk_up(unwinder, &fast, NULL);
	if (trace->stop == MT_STOP_NONE) {
		r = mt_unwind_full(&unwinder->full, space, window, trace);
		if (r < 0)
			return r;
	}
	*ret = trace;
	return 0;
}

bool mt_unwind_way(struct mt_unwinder *unwinder, const struct mt_space *space,
		   const struct mt_window *window, struct mt_way *ret)
{
	struct fast fast = { .space = space, .window = window };
	const struct mt_trace *trace = &unwinder->trace;

	ret->stop = walk_up(unwinder, &fast, NULL);
	ret->n = (uint32_t)trace->len;
	if ((ret->stop != MT_STOP_END && ret->stop != MT_STOP_TRUNCATED) || !ret->n ||
	    ret->n > MT_LEARNED_FRAMES)
		return false;
	for (uint32_t i = 0; i < ret->n; i++) {
		ret->pcs[i] = unwinder->steps[i].pc;
		ret->rows[i] = look_up(unwinder, space, ret->pcs[i] - 1)->row;
		switch ((enum mt_fast_kind)ret->rows[i].kind) {
		case MT_FAST_RSP:
		case MT_FAST_RBP:
		case MT_FAST_CFA_AT_RBP:
		case MT_FAST_END:
			break;
		default:
			return false;
		}
	}
	return true;
}

/* The node of the trace's frames, which are inside of outer; each step is given its own. */
static int find_node(struct mt_unwinder *unwinder, struct mt_call_tree *tree, uint32_t outer,
		     uint32_t *ret)
{
	const struct mt_trace *trace = &unwinder->trace;
	int r;

	for (size_t i = trace->len; i-- > 0;) {
		r = mt_call_tree_child(tree, outer, &trace->frames[i], &outer);
		if (r < 0)
			return r;
		unwinder->steps[i].node = outer;
	}
	*ret = outer;
	return 0;
}

/* A chain that has to be walked, at least to where it meets a known one. */
static int unwind(struct mt_unwinder *unwinder, struct mt_memo *memo, struct fast *fast,
		  struct mt_call_tree *tree, uint32_t *ret_node)
{
	uint32_t outer;
	int r;

	if (memo)
		mt_memo_begin(memo, fast->space, fast->window);
	outer = walk_up(unwinder, fast, memo);
	if (outer == MT_STOP_NONE) {
		r = mt_unwind_full(&unwinder->full, fast->space, fast->window, &unwinder->trace);
		if (r < 0)
			return r;
		unwinder->counts.full++;
		return find_node(unwinder, tree, unwinder->trace.stop, ret_node);
	}
	r = find_node(unwinder, tree, outer, ret_node);
	if (r < 0)
		return r;
	if (memo)
		mt_memo_learn(memo, fast->window, unwinder->steps, unwinder->trace.len, fast->tied);
	if (outer < MT_NODE_FIRST)
		unwinder->counts.walked++;
	else
		unwinder->counts.joined++;
	return 0;
}

int mt_unwind(struct mt_unwinder *unwinder, const struct mt_space *space,
	      const struct mt_window *window, struct mt_call_tree *tree, uint32_t *ret_node)
{
	struct mt_memo *memo = mt_memo_takes(window) ? unwinder->memo : NULL;
	struct fast fast = { .space = space, .window = window };

	assert(!unwinder->tree || unwinder->tree == tree);
	unwinder->tree = tree;
	if (memo && mt_memo_find(memo, space, window, ret_node)) {
		unwinder->counts.found++;
		return 0;
	}
	return unwind(unwinder, memo, &fast, tree, ret_node);
}
