/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * learned.c - see learned.h
 *
 * The outer frames of a stack are mostly those of the look-up before: a trail remembers them,
 * with the words that led through them and with the digest of the chain up to each.  First it is
 * seen how far these words are what they were, from the outermost on; then the walk goes up from
 * the innermost frame, and is done where it comes to a frame that they all lead out from.
 *
 * Invariants
 *   - The walk is the fast loop's of collector/unwind.c, over the same rows: it goes the same
 *     way, or gives up.
 *   - Each word is read within the window, and what is made of it is made of what was read: what
 *     other threads write meanwhile makes it another stack, not a wrong chain.
 *   - The word below a frame's sp is the return address into it.  All else that the walk read
 *     from frame i of a trail on, but for rbp's value there, are its first frames[i].extras extra
 *     words.  They lie at frame i's sp or above, and below the end of the window.
 *   - A trail is true for one state of the slot and one end of windows.
 *   - A look-up ends with in_use as it began, or finds nothing and leaves no trail.
 */
#include "preload/learned.h"

#define EXTRA_WORDS (2 * MT_LEARNED_FRAMES)
/* Return addresses that are compared at a time; and, of the innermost ones, one by one. */
#define BATCH 4
#define LAST 6

/* A frame, and all that was read there. */
struct step {
	uint64_t pc, sp;
	uint64_t row;
	uint64_t rbp;	 /* its value here, if uses_rbp() */
	uint64_t cfa_at; /* CFA_AT_RBP: where that is, 0: not in the window */
};

struct frame {
	uint64_t digest;    /* of the chain from the outermost frame to here */
	uint32_t extras;    /* of this frame and all outer ones */
	uint32_t needs_rbp; /* this frame reads it, or an outer one what this one had in it */
	uint64_t rbp;	    /* its value here, if needs_rbp */
};

struct word {
	uint64_t at, value;
};

/* Frames are counted from the outermost, steps from the innermost. */
struct mt_trail {
	uint64_t in_use; /* mt_trail_in_use() */
	uint64_t end;
	uint32_t seq;
	uint32_t n;
	/* Behind the innermost, LAST times 0. */
	uint64_t sp[MT_LEARNED_FRAMES + LAST];
	uint64_t pc[MT_LEARNED_FRAMES + LAST];
	struct frame frames[MT_LEARNED_FRAMES];
	struct word extras[EXTRA_WORDS];
	struct step steps[MT_LEARNED_FRAMES];
};

enum outcome { OUTCOME_ON, OUTCOME_ENDED, OUTCOME_TRUNCATED, OUTCOME_UNKNOWN };

struct walk {
	const struct mt_learned *learned;
	const struct mt_learned_entry *rows;
	uint64_t start, bytes, shift;
	uint64_t pc, sp;
	uint64_t rbp_at; /* where rbp's value at the frame is saved */
	uint32_t n;	 /* steps so far */
	bool blind;	 /* rbp lies behind the window: nobody knows what is to come again */
	int outer;	 /* the frame of the trail where the walk may come to, or did; -1: none */
};

uint64_t mt_trail_bytes(void)
{
	return sizeof(struct mt_trail);
}

/* The trail has so many frames. */
static inline void cut(struct mt_trail *trail, uint32_t n)
{
	trail->n = n;
	for (uint32_t i = 0; i < LAST; i++)
		trail->sp[n + i] = trail->pc[n + i] = 0;
}

void mt_trail_forget(struct mt_trail *trail)
{
	cut(trail, 0);
	__atomic_store_n(&trail->in_use, 0, __ATOMIC_RELEASE);
}

uint64_t mt_trail_in_use(const struct mt_trail *trail)
{
	return __atomic_load_n(&trail->in_use, __ATOMIC_RELAXED);
}

/* A word that is known to be in the window, and to be aligned; to be used once.  Where a frame was,
 * there may be what a sanitizer has put between the variables of another. */
static inline __attribute__((no_sanitize("address"))) uint64_t word_at(const struct walk *walk,
								       uint64_t at)
{
	return *(const uint64_t *)(at + walk->shift);
}

static inline bool read_word(const struct walk *walk, uint64_t at, uint64_t *ret)
{
	if (__builtin_expect(at - walk->start >= walk->bytes || at & 7, 0))
		return false;
	*ret = *(const volatile uint64_t *)(at + walk->shift);
	return true;
}

/* What the lack of a word means. */
static inline enum outcome lacks(const struct walk *walk, uint64_t at)
{
	return at >= walk->start + walk->bytes && !(at & 7) ? OUTCOME_TRUNCATED : OUTCOME_UNKNOWN;
}

static inline bool uses_rbp(uint64_t row)
{
	return MT_LEARNED_ROW_KIND(row) == MT_LEARNED_RBP ||
	       MT_LEARNED_ROW_KIND(row) == MT_LEARNED_CFA_AT_RBP;
}

/* The CFA where it is not by rsp. */
static __attribute__((noinline)) enum outcome find_cfa(struct walk *walk, struct step *step,
						       uint64_t *ret)
{
	uint64_t at;

	if (MT_LEARNED_ROW_KIND(step->row) == MT_LEARNED_END)
		return OUTCOME_ENDED;
	walk->blind = !read_word(walk, walk->rbp_at, &step->rbp);
	if (walk->blind)
		return lacks(walk, walk->rbp_at);
	*ret = step->rbp + MT_LEARNED_ROW_OFFSET(step->row);
	if (MT_LEARNED_ROW_KIND(step->row) == MT_LEARNED_CFA_AT_RBP) {
		at = *ret;
		step->cfa_at = 0;
		if (!read_word(walk, at, ret))
			return lacks(walk, at);
		step->cfa_at = at;
		walk->rbp_at = step->rbp;
	}
	return *ret > walk->sp && !(*ret & 7) ? OUTCOME_ON : OUTCOME_UNKNOWN;
}

/* One frame up, by its row; the return address and the caller's frame are aligned, if this one
 * is. */
static inline enum outcome climb(struct walk *walk, struct step *step, uint64_t row)
{
	uint64_t cfa = walk->sp + MT_LEARNED_ROW_OFFSET(row), ret_at;

	step->pc = walk->pc;
	step->sp = walk->sp;
	step->row = row;
	if (__builtin_expect(MT_LEARNED_ROW_KIND(row) != MT_LEARNED_RSP, 0)) {
		struct walk copy = *walk; /* whose address is taken: the other is in registers */
		uint64_t found = 0;
		enum outcome outcome = find_cfa(&copy, step, &found);

		cfa = found;
		walk->rbp_at = copy.rbp_at;
		walk->blind = copy.blind;
		if (outcome != OUTCOME_ON)
			return outcome;
	}
	ret_at = cfa - 8;
	walk->rbp_at = MT_LEARNED_ROW_RBP(row) ? cfa + MT_LEARNED_ROW_RBP(row) : walk->rbp_at;
	walk->sp = cfa;
	if (__builtin_expect(ret_at - walk->start >= walk->bytes, 0))
		return lacks(walk, ret_at);
	walk->pc = *(const volatile uint64_t *)(ret_at + walk->shift);
	return __builtin_expect(walk->pc != 0, 1) ? OUTCOME_ON : OUTCOME_ENDED;
}

/* Not 0: the return address into a frame is another one.  The frame's sp is in the window. */
static inline uint64_t change_of(const struct walk *walk, uint64_t sp, uint64_t pc)
{
	return word_at(walk, sp - 8) ^ pc;
}

/*
 * How many frames of the trail, from the outermost on, have the return address that they had.
 * Calls return and are made mostly at the inner end: there it is counted without jumps, which
 * nobody could foresee.  Some that are counted may lie below the walk's frame, where the walk does
 * not come to.
 */
static inline uint32_t count_matches(const struct walk *walk, const struct mt_trail *trail)
{
	uint32_t i = 0, n = 0, so_far = 1;

	for (; i + LAST < trail->n; i += BATCH) {
		const uint64_t *sp = &trail->sp[i], *pc = &trail->pc[i];

		if (sp[BATCH - 1] < walk->sp ||
		    (change_of(walk, sp[0], pc[0]) | change_of(walk, sp[1], pc[1]) |
		     change_of(walk, sp[2], pc[2]) | change_of(walk, sp[3], pc[3])))
			break;
	}
#pragma GCC unroll 6
	for (uint32_t k = 0; k < LAST; k++) {
		uint64_t sp = trail->sp[i + k];

		so_far &= !change_of(walk, sp > walk->sp ? sp : walk->sp, trail->pc[i + k]);
		n += so_far;
	}
	return i + n;
}

/* Lets go of the frames that an extra word leads out from which is another one. */
static inline void drop_changed(struct walk *walk, const struct mt_trail *trail)
{
	uint32_t n = trail->frames[walk->outer].extras, i = 0;

	while (i < n && word_at(walk, trail->extras[i].at) == trail->extras[i].value)
		i++;
	while (walk->outer >= 0 && trail->frames[walk->outer].extras > i)
		walk->outer--;
}

/* Is the walk where the outer frame was?  What leads out from there has been seen. */
static inline bool joins(const struct walk *walk, const struct mt_trail *trail)
{
	const struct frame *frame = &trail->frames[walk->outer];
	uint64_t rbp;

	return walk->sp == trail->sp[walk->outer] && walk->pc == trail->pc[walk->outer] &&
	       (!frame->needs_rbp || (read_word(walk, walk->rbp_at, &rbp) && rbp == frame->rbp));
}

static __attribute__((noinline)) uint64_t probe_row(const struct mt_learned_entry *rows,
						    uint64_t pc)
{
	__u64 row;

	return mt_learned_find_row(rows, pc, &row) ? row : 0;
}

/* The row of the address, or 0.  Mostly it is where it is looked for first. */
static inline uint64_t find_row(const struct mt_learned_entry *rows, uint64_t pc)
{
	const struct mt_learned_entry
		*entry = &rows[mt_learned_row_place(pc) & (MT_LEARNED_ROWS - 1)];
	__u64 row;

	if (__builtin_expect(mt_learned_value(entry, pc, &row), 1))
		return row;
	return probe_row(rows, pc);
}

/* To the frame where the trail goes on, OUTCOME_ON; or to the chain's end. */
static inline enum outcome walk_up(struct walk *walk, struct mt_trail *trail)
{
	for (;; walk->outer--) {
		uint64_t sp = walk->outer >= 0 ? trail->sp[walk->outer] : UINT64_MAX;

		while (walk->sp < sp) {
			uint64_t row = find_row(walk->rows, walk->pc);
			enum outcome outcome;

			if (__builtin_expect(!row || walk->n == MT_LEARNED_FRAMES, 0))
				return OUTCOME_UNKNOWN;
			outcome = climb(walk, &trail->steps[walk->n++], row);
			if (__builtin_expect(outcome != OUTCOME_ON, 0))
				return outcome;
		}
		if (joins(walk, trail))
			return OUTCOME_ON;
	}
}

/* Where the step's function saves rbp for its caller, whose sp that is; or 0. */
static uint64_t saved_at(const struct step *step, uint64_t sp)
{
	if (MT_LEARNED_ROW_KIND(step->row) == MT_LEARNED_CFA_AT_RBP)
		return step->rbp;
	return MT_LEARNED_ROW_RBP(step->row) ? sp + MT_LEARNED_ROW_RBP(step->row) : 0;
}

/* An extra word; false: it does not lie where the trail looks, or there is no room. */
static bool put_extra(struct mt_trail *trail, struct frame *frame, uint64_t sp, uint64_t at,
		      uint64_t value)
{
	if (at - sp >= trail->end - sp || frame->extras == EXTRA_WORDS)
		return false;
	trail->extras[frame->extras++] = (struct word){ at, value };
	return true;
}

/*
 * Of a step that has extra words, or needs rbp.  sp: the outer frame's.  False: it can not be a
 * frame; where both frames read rbp at one place, and not the same, the stack is being written to.
 */
static __attribute__((noinline)) bool note_extras(struct mt_trail *trail, const struct step *step,
						  uint64_t sp, const struct frame *outer,
						  struct frame *ret)
{
	uint64_t at = saved_at(step, sp);
	bool is_in_word = MT_LEARNED_ROW_KIND(step->row) == MT_LEARNED_CFA_AT_RBP && step->cfa_at;

	ret->needs_rbp = uses_rbp(step->row) || (!at && outer->needs_rbp);
	ret->rbp = uses_rbp(step->row) ? step->rbp : outer->rbp;
	if (!at && uses_rbp(step->row) && outer->needs_rbp && outer->rbp != step->rbp)
		return false;
	return (!is_in_word || put_extra(trail, ret, step->sp, step->cfa_at, sp)) &&
	       (!at || !outer->needs_rbp || put_extra(trail, ret, step->sp, at, outer->rbp));
}

/*
 * Puts the walk's steps inside of the n frames that were joined, as far as they can be found again.
 * digest: of what is outside of them.  Returns that of the whole chain.
 */
static inline uint64_t extend(struct mt_trail *trail, const struct walk *walk, uint32_t n,
			      uint64_t digest)
{
	static const struct frame none;
	const __u64 *power = walk->learned->powers + n;
	const struct frame *outer = n ? &trail->frames[n - 1] : &none;
	const struct step *step = trail->steps + walk->n;
	struct frame ends = { 0 };
	uint64_t sp = walk->sp;
	bool goes_on = !walk->blind;

	/* The return address that is none leads into no frame. */
	if (!n && !walk->pc) {
		goes_on = put_extra(trail, &ends, step[-1].sp, sp - 8, 0);
		outer = &ends;
	}
	while (step-- > trail->steps) {
		struct frame *frame = &trail->frames[n];

		digest = mt_learned_digest_frame(digest, step->pc, *power++);
		if (!goes_on)
			continue;
		frame->digest = digest;
		frame->extras = outer->extras;
		frame->needs_rbp = 0;
		if (__builtin_expect(uses_rbp(step->row) || outer->needs_rbp, 0) &&
		    !note_extras(trail, step, sp, outer, frame)) {
			goes_on = false;
			continue;
		}
		sp = step->sp;
		trail->sp[n] = sp;
		trail->pc[n++] = step->pc;
		outer = frame;
	}
	cut(trail, n);
	return digest;
}

/* The digest of the chain as a key, or 0. */
static inline uint64_t find_key(struct mt_trail *trail, struct walk *walk)
{
	uint64_t digest;
	uint32_t n = 0;

	walk->outer = (int)count_matches(walk, trail) - 1;
	/* Extra words of what lies below the walk's frame may not be in the window. */
	while (walk->outer >= 0 && trail->sp[walk->outer] < walk->sp)
		walk->outer--;
	if (walk->outer >= 0 && trail->frames[trail->n - 1].extras)
		drop_changed(walk, trail);
	switch (walk_up(walk, trail)) {
	case OUTCOME_ON:
		digest = trail->frames[walk->outer].digest;
		n = (uint32_t)walk->outer + 1;
		break;
	case OUTCOME_ENDED:
		digest = MT_LEARNED_ENDED;
		break;
	case OUTCOME_TRUNCATED:
		digest = MT_LEARNED_TRUNCATED;
		break;
	default:
		return 0;
	}
	if (n + walk->n > MT_LEARNED_FRAMES)
		return 0;
	return mt_learned_digest_key(extend(trail, walk, n, digest));
}

/* The window's chain as a key, or 0.  seq: even, and the slot's epoch is the window's. */
static uint64_t look_up(const struct mt_learned *learned, uint32_t area, struct mt_trail *trail,
			const struct mt_learned_window *window, uint32_t seq)
{
	struct walk walk = {
		.learned = learned,
		.rows = mt_learned_rows(learned, area),
		.start = window->start,
		.bytes = window->end - window->start,
		.shift = window->shift,
		.sp = window->start + 8 * MT_SAVED_WORDS,
		.rbp_at = window->start + 8 * MT_SAVED_RBP,
	};

	if (trail->seq != seq || trail->end != window->end) {
		trail->seq = seq;
		trail->end = window->end;
		cut(trail, 0);
	}
	if (!read_word(&walk, window->start + 8 * MT_SAVED_RIP, &walk.pc) || !walk.pc)
		return 0;
	return find_key(trail, &walk);
}

bool mt_learned_chain(const struct mt_learned *learned, uint32_t index, struct mt_trail *trail,
		      const struct mt_learned_window *window, struct mt_chain *ret)
{
	const struct mt_learned_slot *slot = &learned->slots[index];
	uint32_t seq, area, places;
	uint64_t key;
	__u64 name;
	bool found;

	*ret = (struct mt_chain){ .epoch = window->epoch };
	seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);
	if (!seq || seq & 1 || __atomic_load_n(&slot->epoch, __ATOMIC_ACQUIRE) != window->epoch)
		return false;
	area = __atomic_load_n(&slot->area, __ATOMIC_ACQUIRE);
	places = __atomic_load_n(&learned->places[area], __ATOMIC_ACQUIRE);
	if (!places)
		return false;
	/* A handler of this thread that comes in between is through with the trail before it is
	 * taken here, and nobody else has it. */
	if (__atomic_load_n(&trail->in_use, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&trail->in_use, window->start, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	key = look_up(learned, area, trail, window, seq);
	found = key && mt_learned_find_chain(mt_learned_chains(learned, area), places, key, &name);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* A handler took these frames for gone: what was made of the trail is of both. */
	if (__builtin_expect(__atomic_load_n(&trail->in_use, __ATOMIC_RELAXED) != window->start,
			     0)) {
		cut(trail, 0);
		key = 0;
	}
	__atomic_store_n(&trail->in_use, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!key || __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) != seq)
		return false;
	ret->key = key;
	ret->name = found ? (uint32_t)name : 0;
	return found;
}
