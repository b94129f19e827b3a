/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * learned.c - see learned.h
 *
 * The outer frames of a stack are mostly those of the look-up before: a trail remembers them,
 * with the words that led through them and with the digest of the chain from each outwards.  A
 * walk that comes to one of them, and finds these words unchanged, is done.
 *
 * Invariants
 *   - The walk is the fast loop's of collector/unwind.c, over the same rows: it goes the same
 *     way, or gives up.
 *   - Each word is read within the window, and what is made of it is made of what was read: what
 *     other threads write meanwhile makes it another stack, not a wrong chain.
 *   - The words of frames 0 to i of a trail, the outermost first, are its first
 *     frames[i].words: all that the walk read from frame i on, but for rbp's value there.
 *     They lie at frames[i].sp or above, and below the end of the window.
 *   - A trail is true for one state of the area and one end of windows.
 */
#include "preload/learned.h"

#define TRAIL_WORDS (2 * MT_LEARNED_FRAMES)
/* The return address, the CFA, the caller's rbp. */
#define STEP_WORDS 3

/* A frame, and all that was read there. */
struct step {
	uint64_t pc, sp;
	uint64_t rbp;	 /* its value here, if uses_rbp */
	uint64_t rbp_at; /* where the caller's is saved, if saves_rbp */
	uint64_t ret_at; /* where the return address is, 0: it was not read */
	uint64_t cfa_at; /* where the CFA is, 0: in no word */
	bool uses_rbp, saves_rbp;
};

struct frame {
	uint64_t pc, sp;
	uint64_t rbp;	 /* its value here, if needs_rbp */
	uint64_t digest; /* of the chain from here outwards */
	uint32_t words;	 /* of this frame and all outer ones */
	bool needs_rbp;	 /* this frame reads it, or an outer one what this one had in it */
};

struct word {
	uint64_t at, value;
};

struct mt_trail {
	uint64_t in_use; /* mt_trail_in_use() */
	uint64_t end;
	uint32_t seq;
	uint32_t n;
	struct frame frames[MT_LEARNED_FRAMES];
	struct word words[TRAIL_WORDS];
	struct step steps[MT_LEARNED_FRAMES]; /* of the walk, the innermost first */
};

enum outcome { OUTCOME_ON, OUTCOME_ENDED, OUTCOME_TRUNCATED, OUTCOME_UNKNOWN };

struct walk {
	uint64_t start, bytes, shift;
	uint64_t pc, sp;
	uint64_t rbp_at; /* where rbp's value at the frame is saved */
	int next;	 /* the innermost frame of the trail that the walk may still meet */
	int matches;	 /* words of the trail that are as they were; -1: not compared yet */
};

uint64_t mt_trail_bytes(void)
{
	return sizeof(struct mt_trail);
}

void mt_trail_forget(struct mt_trail *trail)
{
	trail->n = 0;
	__atomic_store_n(&trail->in_use, 0, __ATOMIC_RELEASE);
}

uint64_t mt_trail_in_use(const struct mt_trail *trail)
{
	return __atomic_load_n(&trail->in_use, __ATOMIC_RELAXED);
}

static inline bool read_word(const struct walk *walk, uint64_t at, uint64_t *ret)
{
	if (__builtin_expect(at - walk->start >= walk->bytes || at & 7, 0))
		return false;
	*ret = *(const volatile uint64_t *)(at + walk->shift);
	return true;
}

/* What the lack of a word means. */
static enum outcome lacks(const struct walk *walk, uint64_t at)
{
	return at >= walk->start + walk->bytes && !(at & 7) ? OUTCOME_TRUNCATED : OUTCOME_UNKNOWN;
}

static inline enum outcome find_cfa(struct walk *walk, uint64_t row, struct step *step,
				    uint64_t *ret)
{
	uint64_t offset = 8 * (int64_t)MT_LEARNED_ROW_OFFSET(row);

	if (__builtin_expect(MT_LEARNED_ROW_KIND(row) == MT_LEARNED_RSP, 1)) {
		*ret = walk->sp + offset;
		return OUTCOME_ON;
	}
	if (!read_word(walk, walk->rbp_at, &step->rbp))
		return lacks(walk, walk->rbp_at);
	step->uses_rbp = true;
	*ret = step->rbp + offset;
	if (MT_LEARNED_ROW_KIND(row) == MT_LEARNED_CFA_AT_RBP) {
		uint64_t at = *ret;

		if (!read_word(walk, at, ret))
			return lacks(walk, at);
		step->cfa_at = at;
		step->saves_rbp = true;
		step->rbp_at = step->rbp;
	}
	return *ret > walk->sp ? OUTCOME_ON : OUTCOME_UNKNOWN;
}

/* One frame up. */
static inline enum outcome climb(struct walk *walk, uint64_t row, struct step *step)
{
	enum outcome outcome;
	uint64_t cfa;

	step->pc = walk->pc;
	step->sp = walk->sp;
	step->ret_at = step->cfa_at = 0;
	step->uses_rbp = step->saves_rbp = false;
	if (MT_LEARNED_ROW_KIND(row) == MT_LEARNED_END)
		return OUTCOME_ENDED;
	outcome = find_cfa(walk, row, step, &cfa);
	if (__builtin_expect(outcome != OUTCOME_ON, 0))
		return outcome;
	if (MT_LEARNED_ROW_RBP(row)) {
		step->saves_rbp = true;
		step->rbp_at = cfa + 8 * (int64_t)MT_LEARNED_ROW_RBP(row);
	}
	if (!read_word(walk, cfa - 8, &walk->pc))
		return lacks(walk, cfa - 8);
	step->ret_at = cfa - 8;
	walk->sp = cfa;
	if (step->saves_rbp)
		walk->rbp_at = step->rbp_at;
	return walk->pc ? OUTCOME_ON : OUTCOME_ENDED;
}

/* Not 0, where the word is another one.  It is aligned, or it would not be here. */
static inline uint64_t change_of(const struct walk *walk, const struct word *word)
{
	return *(const volatile uint64_t *)(word->at + walk->shift) ^ word->value;
}

/* How many of the first n words of the trail, from the outermost on, are as they were; the walk
 * has come to a frame above which they lie. */
static int count_matches(const struct walk *walk, const struct mt_trail *trail, uint32_t n)
{
	const struct word *word = trail->words, *end = word + n;

	for (; end - word >= 4; word += 4)
		if (change_of(walk, &word[0]) | change_of(walk, &word[1]) |
		    change_of(walk, &word[2]) | change_of(walk, &word[3]))
			break;
	while (word < end && !change_of(walk, word))
		word++;
	return (int)(word - trail->words);
}

/* Does the trail go on as the walk will from here? */
static inline bool joins(struct walk *walk, const struct mt_trail *trail)
{
	const struct frame *frame;
	uint64_t rbp;

	while (walk->next >= 0 && trail->frames[walk->next].sp < walk->sp)
		walk->next--;
	if (walk->next < 0)
		return false;
	frame = &trail->frames[walk->next];
	if (frame->sp != walk->sp || frame->pc != walk->pc ||
	    (frame->needs_rbp && (!read_word(walk, walk->rbp_at, &rbp) || rbp != frame->rbp)))
		return false;
	if (walk->matches < 0)
		walk->matches = count_matches(walk, trail, frame->words);
	return (int)frame->words <= walk->matches;
}

static void put_word(struct mt_trail *trail, uint32_t *n, uint64_t at, uint64_t value)
{
	trail->words[(*n)++] = (struct word){ at, value };
}

/* Makes the step the trail's innermost frame.  The words that it read had what the walk went on
 * with: ret, cfa and the outer frame's rbp. */
static inline void push(struct mt_trail *trail, const struct step *step, uint64_t ret, uint64_t cfa,
			uint64_t digest)
{
	static const struct frame none;
	const struct frame *outer = trail->n ? &trail->frames[trail->n - 1] : &none;
	struct frame *frame = &trail->frames[trail->n++];
	uint32_t words = outer->words;

	if (step->ret_at)
		put_word(trail, &words, step->ret_at, ret);
	if (step->cfa_at)
		put_word(trail, &words, step->cfa_at, cfa);
	if (step->saves_rbp && outer->needs_rbp)
		put_word(trail, &words, step->rbp_at, outer->rbp);
	frame->pc = step->pc;
	frame->sp = step->sp;
	frame->digest = digest;
	frame->words = words;
	frame->needs_rbp = step->uses_rbp || (!step->saves_rbp && outer->needs_rbp);
	frame->rbp = step->uses_rbp ? step->rbp : outer->rbp;
}

/* Has it read what does not lie from its frame to the end of the window?  sp: the outer frame's,
 * or where the next one would be.  The outermost one's rbp_at may lie behind a window that is cut,
 * where nobody has read it. */
static inline bool reads_elsewhere(const struct mt_trail *trail, const struct step *step,
				   uint64_t sp)
{
	uint64_t bytes = trail->end - step->sp;

	return sp < step->sp || (step->ret_at && step->ret_at - step->sp >= bytes) ||
	       (step->cfa_at && step->cfa_at - step->sp >= bytes) ||
	       (trail->n && step->saves_rbp && step->rbp_at - step->sp >= bytes);
}

/* Did both frames read rbp where it is saved, and not the same? */
static inline bool is_torn(const struct mt_trail *trail, const struct step *step)
{
	const struct frame *outer;

	if (!trail->n || !step->uses_rbp || step->saves_rbp)
		return false;
	outer = &trail->frames[trail->n - 1];
	return outer->needs_rbp && outer->rbp != step->rbp;
}

/* Is there room for another frame, with all that it may have read? */
static inline bool has_room(const struct mt_trail *trail)
{
	return trail->n < MT_LEARNED_FRAMES &&
	       (!trail->n || trail->frames[trail->n - 1].words + STEP_WORDS <= TRAIL_WORDS);
}

/* Puts the n steps of the walk behind what was joined of the trail, as far as there is room;
 * digest: of the chain outside of them.  Returns that of the whole chain. */
static uint64_t extend(struct mt_trail *trail, const struct walk *walk, uint32_t n, uint64_t digest,
		       uint64_t point)
{
	uint64_t pc = walk->pc, sp = walk->sp;
	bool goes_on = true, torn = false;

	while (n-- > 0) {
		const struct step *step = &trail->steps[n];

		digest = mt_learned_digest_frame(digest, step->pc, point);
		torn = torn || (goes_on && is_torn(trail, step));
		goes_on = goes_on && !torn && has_room(trail) && !reads_elsewhere(trail, step, sp);
		if (goes_on)
			push(trail, step, pc, sp, digest);
		pc = step->pc;
		sp = step->sp;
	}
	if (torn)
		trail->n = 0;
	return digest;
}

/* The digest of the chain as a key, or 0. */
static uint64_t walk_up(const struct mt_learned *learned, struct mt_trail *trail, struct walk *walk)
{
	enum outcome outcome = walk->pc ? OUTCOME_ON : OUTCOME_UNKNOWN;
	uint64_t digest;
	uint32_t n = 0;
	__u64 row;

	for (; outcome == OUTCOME_ON; n++) {
		if (n == MT_LEARNED_FRAMES)
			return 0;
		if (joins(walk, trail))
			break;
		if (!mt_learned_find(mt_learned_rows(learned), MT_LEARNED_ROWS, walk->pc, &row))
			return 0;
		outcome = climb(walk, row, &trail->steps[n]);
	}
	switch (outcome) {
	case OUTCOME_ON:
		digest = trail->frames[walk->next].digest;
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
	trail->n = outcome == OUTCOME_ON ? (uint32_t)walk->next + 1 : 0;
	return mt_learned_digest_key(extend(trail, walk, n, digest, learned->point));
}

/* seq: even, and the area's epoch is the window's. */
static bool look_up(const struct mt_learned *learned, struct mt_trail *trail,
		    const struct mt_learned_window *window, uint32_t seq, uint32_t *ret_name)
{
	struct walk walk = {
		.start = window->start,
		.bytes = window->end - window->start,
		.shift = window->shift,
		.sp = window->start + 8 * MT_SAVED_WORDS,
		.rbp_at = window->start + 8 * MT_SAVED_RBP,
		.matches = -1,
	};
	uint64_t key;
	__u64 name;

	if (trail->seq != seq || trail->end != window->end) {
		trail->seq = seq;
		trail->end = window->end;
		trail->n = 0;
	}
	walk.next = (int)trail->n - 1;
	if (!read_word(&walk, window->start + 8 * MT_SAVED_RIP, &walk.pc))
		return false;
	key = walk_up(learned, trail, &walk);
	if (!key || !mt_learned_find(mt_learned_chains(learned), MT_LEARNED_CHAINS, key, &name))
		return false;
	*ret_name = (uint32_t)name;
	return true;
}

bool mt_learned_chain(const struct mt_learned *learned, struct mt_trail *trail,
		      const struct mt_learned_window *window, uint32_t *ret_name)
{
	uint32_t seq;
	bool found;

	if (!__atomic_load_n(&learned->taught, __ATOMIC_RELAXED))
		return false;
	seq = __atomic_load_n(&learned->seq, __ATOMIC_ACQUIRE);
	if (seq & 1 || __atomic_load_n(&learned->epoch, __ATOMIC_ACQUIRE) != window->epoch)
		return false;
	/* A handler of this thread that comes in between is through with the trail before it is
	 * taken here, and nobody else has it. */
	if (__atomic_load_n(&trail->in_use, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&trail->in_use, window->start, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	found = look_up(learned, trail, window, seq, ret_name);
	__atomic_store_n(&trail->in_use, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return found && __atomic_load_n(&learned->seq, __ATOMIC_RELAXED) == seq;
}
