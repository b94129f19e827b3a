/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memo.c - see memo.h for the contract
 *
 * Invariants
 *   - A place is the low 16 bits of an address / 8.  With the window's end it names one word
 *     of a window, because none is longer than MT_BUDGET_MAX_BYTES.
 *   - The words of a spine's frames 0 to i are its first frames[i].words: all that the walk
 *     read from frame i on, but for rbp's value there (needs_rbp).
 *   - Chains lie in a log, one behind the other; a chain is there as long as the log has not
 *     grown by more than its size since the chain's position.  Positions only grow.
 */
#include "collector/memo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "wire/reference.h"

#define LOG_BYTES (1024 * 1024)
#define SETS 2048
#define WAYS 4
#define GOLDEN 0x9e3779b97f4a7c15ULL

/* Words are compared so many at a time. */
#define STRIDE 4
/* Beside those of a spine: malloc's return address, rbp; and up to a multiple of STRIDE. */
#define CHAIN_WORDS (MT_MEMO_WORDS + 2 + STRIDE)

/* A frame of a spine, and what decided the walk from there on. */
struct frame {
	uint64_t pc, sp;
	uint64_t rbp; /* its value here, if needs_rbp */
	uint32_t node;
	uint16_t words; /* of this frame and all outer ones */
	bool linked;
	bool needs_rbp; /* this frame reads it, or an outer one what this one had in it */
};

/* A chain that was walked, the outermost frame first. */
struct spine {
	uint64_t stamp, end;
	bool bottom;
	uint32_t n;
	struct frame frames[MT_MEMO_FRAMES];
	uint64_t values[MT_MEMO_WORDS];
	uint16_t places[MT_MEMO_WORDS];
};

/* Followed by words values and words places. */
struct chain {
	uint64_t stamp;
	uint64_t start, end;
	uint32_t node;
	uint16_t words; /* a multiple of STRIDE */
	bool bottom;
};

_Static_assert(MT_BUDGET_MAX_BYTES / 8 <= UINT16_MAX / 2, "a place is ambiguous");
_Static_assert(sizeof(struct chain) % 8 == 0, "values behind a chain are not aligned");
_Static_assert(sizeof(struct chain) + CHAIN_WORDS * 10 <= LOG_BYTES / 16, "the log is too short");

struct mt_memo {
	/* The walk that was begun. */
	struct spine *spine;
	const struct mt_space *space;
	int32_t next;	 /* the innermost frame of the spine that the walk may still meet */
	int32_t joined;	 /* -1: none */
	int32_t matches; /* words of the spine that are as they were; -1: not compared yet */

	uint64_t grown;		   /* what the log ever had, and gaps */
	uint64_t sets[SETS][WAYS]; /* positions in the log, used last first */
	struct spine spines[MT_MEMO_SPINES];
	uint64_t log[LOG_BYTES / 8];
};

int mt_memo_new(struct mt_memo **ret)
{
	struct mt_memo *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	/* So that a position of 0 is of the past. */
	m->grown = 2 * LOG_BYTES;
	*ret = m;
	return 0;
}

void mt_memo_free(struct mt_memo *m)
{
	free(m);
}

bool mt_memo_takes(const struct mt_window *window)
{
	return window->end - window->start <= MT_BUDGET_MAX_BYTES &&
	       window->end - window->start >= 8 * MT_SAVED_WORDS && window->mask <= UINT16_MAX;
}

static inline uint64_t word_at(const struct mt_window *window, uint16_t place)
{
	return window->words[place & window->mask];
}

static inline struct chain *chain_at(struct mt_memo *m, uint64_t position)
{
	return (struct chain *)((char *)m->log + position % LOG_BYTES);
}

static uint64_t *set_of(struct mt_memo *m, const struct mt_space *space,
			const struct mt_window *window)
{
	uint64_t ret = word_at(window, (uint16_t)(window->start / 8 + MT_SAVED_RIP));
	uint64_t hash = (ret ^ space->stamp << 48) * GOLDEN;

	hash = (hash ^ hash >> 32 ^ window->start ^ window->end << 17) * GOLDEN;
	return m->sets[(hash >> 40) % SETS];
}

/* The innermost words are the last, and differ first. */
static bool same_words(const struct chain *chain, const struct mt_window *window)
{
	const uint64_t *values = (const uint64_t *)(chain + 1);
	const uint16_t *places = (const uint16_t *)(values + chain->words);

	for (size_t i = chain->words; i; i -= STRIDE) {
		uint64_t differ = (word_at(window, places[i - 1]) ^ values[i - 1]) |
				  (word_at(window, places[i - 2]) ^ values[i - 2]) |
				  (word_at(window, places[i - 3]) ^ values[i - 3]) |
				  (word_at(window, places[i - 4]) ^ values[i - 4]);

		if (differ)
			return false;
	}
	return true;
}

static void move_to_front(uint64_t *set, int way, uint64_t position)
{
	for (; way > 0; way--)
		set[way] = set[way - 1];
	set[0] = position;
}

bool mt_memo_find(struct mt_memo *m, const struct mt_space *space, const struct mt_window *window,
		  uint32_t *ret_node)
{
	uint64_t *set = set_of(m, space, window);

	for (int way = 0; way < WAYS; way++) {
		const struct chain *chain = chain_at(m, set[way]);

		if (m->grown - set[way] > LOG_BYTES || chain->start != window->start ||
		    chain->end != window->end || chain->stamp != space->stamp ||
		    chain->bottom != window->bottom || !same_words(chain, window))
			continue;
		*ret_node = chain->node;
		move_to_front(set, way, set[way]);
		return true;
	}
	return false;
}

void mt_memo_begin(struct mt_memo *m, const struct mt_space *space, const struct mt_window *window)
{
	uint64_t hash = (window->end ^ space->stamp) * GOLDEN;
	struct spine *spine = &m->spines[(hash >> 40) % MT_MEMO_SPINES];

	if (spine->stamp != space->stamp || spine->end != window->end ||
	    spine->bottom != window->bottom) {
		spine->stamp = space->stamp;
		spine->end = window->end;
		spine->bottom = window->bottom;
		spine->n = 0;
	}
	m->spine = spine;
	m->space = space;
	m->next = (int32_t)spine->n - 1;
	m->joined = m->matches = -1;
}

/* How many words of the spine, from the outermost on, the window has as they were. */
static int32_t count_matches(const struct spine *spine, const struct mt_window *window)
{
	uint64_t window_words = (window->end - window->start) / 8;
	uint16_t end = (uint16_t)(window->end / 8);
	int32_t i, n = spine->frames[spine->n - 1].words;

	for (i = 0; i < n; i++)
		if ((uint16_t)(end - spine->places[i]) > window_words ||
		    word_at(window, spine->places[i]) != spine->values[i])
			break;
	return i;
}

/* The walk is at that frame, but for rbp. */
static bool goes_on(struct mt_memo *m, const struct mt_window *window, const struct frame *frame,
		    uint64_t rbp_at)
{
	uint64_t rbp;

	if (frame->needs_rbp && (!mt_window_read(window, rbp_at, &rbp) || rbp != frame->rbp))
		return false;
	if (m->matches < 0)
		m->matches = count_matches(m->spine, window);
	return frame->words <= m->matches;
}

bool mt_memo_join(struct mt_memo *m, const struct mt_window *window,
		  const struct mt_memo_step *step, uint64_t rbp_at, uint32_t *ret_node)
{
	const struct frame *frames = m->spine->frames;
	int32_t next = m->next;

	while (next >= 0 && frames[next].sp < step->sp)
		next--;
	m->next = next;
	if (next < 0 || frames[next].sp != step->sp || frames[next].pc != step->pc ||
	    frames[next].linked != step->linked || !goes_on(m, window, &frames[next], rbp_at))
		return false;
	m->joined = next;
	*ret_node = frames[next].node;
	return true;
}

static uint16_t put_word(struct spine *spine, uint16_t n, const struct mt_window *window,
			 uint64_t address)
{
	uint16_t place = (uint16_t)(address / 8);

	spine->places[n] = place;
	spine->values[n] = word_at(window, place);
	return n + 1;
}

/* Makes the step the spine's innermost frame. */
static void push(struct spine *spine, const struct mt_window *window,
		 const struct mt_memo_step *step)
{
	static const struct frame none;
	const struct frame *outer = spine->n ? &spine->frames[spine->n - 1] : &none;
	struct frame *frame = &spine->frames[spine->n++];
	uint16_t words = outer->words;

	for (int i = 0; i < 2; i++)
		if (step->at[i] != MT_MEMO_NOWHERE)
			words = put_word(spine, words, window, step->at[i]);
	if (step->saves_rbp && outer->needs_rbp)
		words = put_word(spine, words, window, step->rbp_at);
	*frame = (struct frame){
		.pc = step->pc,
		.sp = step->sp,
		.node = step->node,
		.words = words,
		.linked = step->linked,
	};
	if (step->uses_rbp) {
		frame->needs_rbp = true;
		frame->rbp = step->rbp;
	} else if (!step->saves_rbp) {
		frame->needs_rbp = outer->needs_rbp;
		frame->rbp = outer->rbp;
	}
}

/* Room in the log for a chain of so many words. */
static struct chain *reserve(struct mt_memo *m, size_t words, uint64_t *ret_position)
{
	size_t len = (sizeof(struct chain) + words * 10 + 7) & ~(size_t)7;

	if (m->grown % LOG_BYTES + len > LOG_BYTES)
		m->grown += LOG_BYTES - m->grown % LOG_BYTES;
	*ret_position = m->grown;
	m->grown += len;
	return chain_at(m, *ret_position);
}

/* Remembers the whole chain that the spine is now. */
static void keep_chain(struct mt_memo *m, const struct mt_window *window)
{
	const struct spine *spine = m->spine;
	const struct frame *frame = &spine->frames[spine->n - 1];
	uint16_t extra[2 + STRIDE], n_extra = 0;
	uint64_t position, *values;
	struct chain *chain;
	uint16_t *places;

	if (frame->needs_rbp)
		extra[n_extra++] = (uint16_t)(window->start / 8 + MT_SAVED_RBP);
	do
		extra[n_extra++] = (uint16_t)(window->start / 8 + MT_SAVED_RIP);
	while ((frame->words + n_extra) % STRIDE);

	chain = reserve(m, frame->words + n_extra, &position);
	*chain = (struct chain){
		.stamp = m->space->stamp,
		.start = window->start,
		.end = window->end,
		.node = frame->node,
		.words = frame->words + n_extra,
		.bottom = window->bottom,
	};
	values = (uint64_t *)(chain + 1);
	places = (uint16_t *)(values + chain->words);
	memcpy(values, spine->values, frame->words * sizeof(*values));
	memcpy(places, spine->places, frame->words * sizeof(*places));
	for (uint16_t i = 0; i < n_extra; i++) {
		places[frame->words + i] = extra[i];
		values[frame->words + i] = word_at(window, extra[i]);
	}
	move_to_front(set_of(m, m->space, window), WAYS - 1, position);
}

void mt_memo_learn(struct mt_memo *m, const struct mt_window *window,
		   const struct mt_memo_step *steps, size_t n, bool tied)
{
	struct spine *spine = m->spine;

	spine->n = (uint32_t)(m->joined + 1);
	if (spine->n + n > MT_MEMO_FRAMES ||
	    (spine->n ? spine->frames[spine->n - 1].words : 0) + 3 * n > MT_MEMO_WORDS) {
		spine->n = 0;
		return;
	}
	while (n-- > 0)
		push(spine, window, &steps[n]);
	if (spine->n)
		keep_chain(m, window);
	if (tied)
		spine->n = 0;
}
