/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stacks.c - see stacks.h for the contract
 *
 * Invariants
 *   - A slot's waiting records are in the order in which they were begun, which their numbers
 *     tell; raw ones, which have numbers of their own, apart from the others.  None is there
 *     twice, or again.
 *   - known[] has what an entry of the slot's dictionary stood for after the records that were
 *     applied; past[] what it was before its last changes, for the event of a call that
 *     a signal handler's capture overtook between its last look at seq and its append.
 *   - Where numbers are missing, a lost record may have changed any entry: an older one
 *     counts only if the dictionary has its digest still and no record that waits will put
 *     it there.
 *   - A generation begins with an empty dictionary, known[] with it.
 *   - Who has lost a stack is asked for a key frame first, then made to forget the digest: what
 *     comes for want of the digest is then a key frame.
 *   - Numbers wrap: they are compared by difference.
 */
#include "collector/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/format.h"
#include "base/cleanup.h"
#include "collector/decode.h"
#include "collector/teach.h"
#include "collector/unwind.h"
#include "wire/stack_record.h"

/* How many places a record may have come too late and be put in order yet. */
#define LATE_MAX 16
/* Raw windows that were applied for an event of a nested capture, which was first. */
#define RAW_KEPT 16
#define PAST_KEPT 16
/* How many numbers a call may be overtaken by; what seems to be further back is older than half
 * a turn of the numbers. */
#define OVERTAKEN_MAX (1u << 20)

struct waiting {
	struct waiting *next, *previous;
	uint32_t len;
	uint32_t seq;
	uint16_t generation; /* raw: 0 */
	uint16_t entry;
	bool raw;
	uint64_t digest; /* raw: 0 */
	struct mt_stack_record head;
	char bytes[] __attribute__((aligned(8)));
};

struct queue {
	struct waiting *first, *last;
};

struct entry {
	uint64_t digest; /* 0: nothing is known */
	uint32_t node;
	uint32_t seq;  /* of the record that brought it */
	uint32_t sure; /* up to this number nothing lost can have changed it */
};

struct past {
	uint16_t entry;
	bool valid;
	uint32_t node;
	uint32_t from, until;
};

/* A slot's reference and dictionary as far as records were applied. */
struct mirror {
	struct mt_decoder *decoder;
	bool begun;
	uint16_t generation;
	uint32_t applied; /* number of the last record */
	bool has_missing;
	uint32_t missing; /* the highest that never came, below applied */
	bool asked;
	uint32_t asked_at; /* where the slot was when a key frame was asked for */
	uint32_t next_past;
	struct past past[PAST_KEPT];
	struct entry known[MT_DICTIONARY];
	/* Where the slot was when its dictionary was made to forget the entry, if it was. */
	uint32_t forgotten_at[MT_DICTIONARY];
	bool forgotten[MT_DICTIONARY];
	uint32_t waiting_for[MT_DICTIONARY]; /* records that wait */
};

struct raw_node {
	uint32_t node;
	uint32_t seq;
	bool valid;
};

struct slot {
	struct queue records, raws;
	/* The last record that was taken out; what is not after it comes too late. */
	bool begun;
	uint16_t generation;
	uint32_t seq;
	bool claimed;
	uint16_t claim; /* generation with which the owner began */
	uint64_t waiting_bytes;
	struct mirror *mirror; /* NULL until there is a record that is not raw, or an event */
	struct raw_node kept[RAW_KEPT];
	uint32_t next_kept;
};

struct mt_stacks {
	struct mt_segments *segments;
	struct mt_call_tree *tree;
	struct mt_unwinder *unwinder;
	struct mt_teach *teach; /* NULL: nothing is taught */
	struct mt_decoder *raw_decoder;
	struct slot **slots; /* MT_SLOTS of them, NULL until used */
	uint64_t waiting_bytes;
	uint64_t *whole; /* a bit for each node: a stack was unwound to it */
	size_t whole_words;
	struct mt_stacks_counts counts;
	int (*observe)(void *ctx, const struct mt_unwound_stack *stack); /* NULL: nobody does */
	void *observe_ctx;
};

int mt_stacks_new(struct mt_segments *segments, struct mt_call_tree *tree, struct mt_stacks **ret)
{
	mt_cleanup(mt_stacks_freep) struct mt_stacks *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->segments = segments;
	s->tree = tree;
	s->slots = calloc(MT_SLOTS, sizeof(struct slot *));
	if (!s->slots)
		return -ENOMEM;
	r = mt_decoder_new(segments->budget_bytes, &s->raw_decoder);
	if (r < 0)
		return r;
	r = mt_unwinder_new(&s->unwinder);
	if (r == 0 && segments->learned)
		r = mt_teach_new(segments, &s->teach);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(s);
	return 0;
}

static void free_queue(struct queue *queue)
{
	while (queue->first) {
		struct waiting *next = queue->first->next;

		free(queue->first);
		queue->first = next;
	}
}

static void free_slot(struct slot *slot)
{
	free_queue(&slot->records);
	free_queue(&slot->raws);
	if (slot->mirror)
		mt_decoder_free(slot->mirror->decoder);
	free(slot->mirror);
	free(slot);
}

void mt_stacks_free(struct mt_stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->slots && i < MT_SLOTS; i++)
		if (s->slots[i])
			free_slot(s->slots[i]);
	free(s->slots);
	free(s->whole);
	mt_decoder_free(s->raw_decoder);
	mt_unwinder_free(s->unwinder);
	mt_teach_free(s->teach);
	free(s);
}

void mt_stacks_counts(const struct mt_stacks *s, struct mt_stacks_counts *ret)
{
	*ret = s->counts;
}

void mt_stacks_observe(struct mt_stacks *s,
		       int (*observe)(void *ctx, const struct mt_unwound_stack *stack), void *ctx)
{
	s->observe = observe;
	s->observe_ctx = ctx;
}

static struct slot *get_slot(struct mt_stacks *s, uint32_t index)
{
	if (!s->slots[index])
		s->slots[index] = calloc(1, sizeof(struct slot));
	return s->slots[index];
}

int mt_stacks_claim(struct mt_stacks *s, uint32_t index, uint16_t generation)
{
	struct slot *slot = get_slot(s, index);

	if (!slot)
		return -ENOMEM;
	slot->claimed = true;
	slot->claim = generation;
	return 0;
}

static int get_mirror(struct mt_stacks *s, struct slot *slot)
{
	struct mirror *mirror;
	int r;

	if (slot->mirror)
		return 0;
	mirror = calloc(1, sizeof(*mirror));
	if (!mirror)
		return -ENOMEM;
	r = mt_decoder_new(s->segments->budget_bytes, &mirror->decoder);
	if (r < 0) {
		free(mirror);
		return r;
	}
	slot->mirror = mirror;
	return 0;
}

/* Whether a record was sent after the one with that generation and number. */
static bool is_after(const struct waiting *w, uint16_t generation, uint32_t seq)
{
	if (w->generation != generation)
		return (int16_t)(w->generation - generation) > 0;
	return (int32_t)(w->seq - seq) > 0;
}

/*
 * Whether the record was taken out before, or is of no use after those that were.  A raw one is
 * of use whenever it comes: one that interrupted another is complete, and named, first.
 */
static bool is_over(const struct slot *slot, const struct waiting *w)
{
	if (!w->raw)
		return slot->begun && !is_after(w, slot->generation, slot->seq);
	for (int i = 0; i < RAW_KEPT; i++)
		if (slot->kept[i].valid && slot->kept[i].seq == w->seq)
			return true;
	return false;
}

/*
 * Puts a record in its place; false if it is there.  Either it is the last, as nearly always,
 * or it was late by a few places, or it is the first.
 */
static bool enqueue(struct queue *queue, struct waiting *w)
{
	struct waiting *before = queue->last;

	if (queue->first && is_after(queue->first, w->generation, w->seq))
		before = NULL;
	for (int late = 0; before && !is_after(w, before->generation, before->seq); late++) {
		if (late == LATE_MAX || !is_after(before, w->generation, w->seq))
			return false;
		before = before->previous;
	}
	w->previous = before;
	w->next = before ? before->next : queue->first;
	*(before ? &before->next : &queue->first) = w;
	*(w->next ? &w->next->previous : &queue->last) = w;
	return true;
}

/* The memory that it takes while it waits: most records are shorter than what is kept beside. */
static size_t memory_of(const struct waiting *w)
{
	return sizeof(*w) + w->len;
}

/* Takes the first one out, which is the caller's then. */
static struct waiting *dequeue(struct mt_stacks *s, struct slot *slot, struct queue *queue)
{
	struct waiting *w = queue->first;

	queue->first = w->next;
	*(w->next ? &w->next->previous : &queue->last) = NULL;
	slot->waiting_bytes -= memory_of(w);
	s->waiting_bytes -= memory_of(w);
	if (!w->raw) {
		slot->begun = true;
		slot->generation = w->generation;
		slot->seq = w->seq;
		slot->mirror->waiting_for[w->entry]--;
	}
	return w;
}

int mt_stacks_push(struct mt_stacks *s, uint32_t index, const void *record, size_t len)
{
	mt_cleanup(mt_freep) struct waiting *w = NULL;
	struct mt_stack_record head;
	struct slot *slot;
	bool raw;
	int r;

	r = mt_decode_head(s->segments->budget_bytes, record, len, &head);
	if (r < 0 || head.slot >= MT_SLOTS || (index != MT_STACKS_ANY_SLOT && index != head.slot)) {
		s->counts.malformed++;
		return 0;
	}
	len = (size_t)head.len_words * 8;
	if (s->waiting_bytes + sizeof(*w) + len > MT_STACKS_WAITING_BYTES)
		return -EAGAIN;
	slot = get_slot(s, head.slot);
	if (!slot)
		return -ENOMEM;
	raw = head.kind == MT_STACK_RAW;
	r = raw ? 0 : get_mirror(s, slot);
	if (r < 0)
		return r;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return -ENOMEM;
	w->len = (uint32_t)len;
	w->seq = head.seq;
	w->generation = raw ? 0 : head.generation;
	w->entry = head.entry;
	w->raw = raw;
	w->digest = head.digest;
	w->head = head;
	memcpy(w->bytes, record, len);
	if (is_over(slot, w) || !enqueue(raw ? &slot->raws : &slot->records, w)) {
		s->counts.duplicates++;
		return 0;
	}
	if (!raw)
		slot->mirror->waiting_for[w->entry]++;
	slot->waiting_bytes += memory_of(w);
	s->waiting_bytes += memory_of(w);
	mt_take_ptr(w);
	s->counts.records++;
	s->counts.raw_records += raw;
	s->counts.record_bytes += len;
	return 0;
}

/* Whether seq is at or a little before that number: what was sent until then. */
static bool is_until(uint32_t seq, uint32_t number)
{
	return number - seq < OVERTAKEN_MAX;
}

static uint32_t number_of(const struct mt_reference *reference)
{
	return (uint32_t)(__atomic_load_n(&reference->seq, __ATOMIC_ACQUIRE) / 2);
}

static uint64_t *dictionary_entry(struct mt_reference *reference, uint32_t entry)
{
	return (uint64_t *)((char *)reference + MT_DICTIONARY_OFFSET) + entry;
}

/* The slot's next record is to be a key frame, because of one with that number; unless it was
 * asked since. */
static void ask_key(struct mt_reference *reference, struct mirror *mirror, uint32_t seq)
{
	if (mirror->asked && is_until(seq, mirror->asked_at))
		return;
	__atomic_fetch_add(&reference->resync_asked, 1, __ATOMIC_SEQ_CST);
	mirror->asked = true;
	mirror->asked_at = number_of(reference);
}

/*
 * Makes the slot forget what its dictionary has at that entry, if that is the digest (0: whatever
 * it is).  If it is another by now, that has a record of its own.
 */
static void forget(struct mt_reference *reference, struct mirror *mirror, uint32_t entry,
		   uint64_t digest)
{
	uint64_t *at = dictionary_entry(reference, entry);
	uint64_t has = digest ? digest : __atomic_load_n(at, __ATOMIC_ACQUIRE);

	if (!__atomic_compare_exchange_n(at, &has, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE) &&
	    has)
		return;
	mirror->forgotten[entry] = true;
	mirror->forgotten_at[entry] = number_of(reference);
}

/* The record came to nothing: its stack is to come again. */
static void lose_record(struct mt_stacks *s, uint32_t index, struct slot *slot,
			const struct waiting *w)
{
	struct mt_reference *reference = mt_segments_reference(s->segments, index);

	if (!reference || w->raw)
		return;
	ask_key(reference, slot->mirror, w->seq);
	forget(reference, slot->mirror, w->entry, w->digest);
}

/*
 * An event names an entry of which nothing is known: what it stands for is to come again, unless
 * its record is here already, or the event is from before the entry was forgotten.
 */
static void lose_entry(struct mt_stacks *s, uint32_t index, struct mirror *mirror, uint32_t entry,
		       uint32_t seq)
{
	struct mt_reference *reference = mt_segments_reference(s->segments, index);

	mirror->known[entry] = (struct entry){ 0 };
	if (!reference || mirror->waiting_for[entry] ||
	    (mirror->forgotten[entry] && is_until(seq, mirror->forgotten_at[entry])))
		return;
	ask_key(reference, mirror, seq);
	forget(reference, mirror, entry, 0);
}

/* Whether the dictionary has the entry that is known, and will have it. */
static bool is_there(struct mt_reference *reference, const struct mirror *mirror, uint32_t entry)
{
	return !mirror->waiting_for[entry] &&
	       __atomic_load_n(dictionary_entry(reference, entry), __ATOMIC_ACQUIRE) ==
		       mirror->known[entry].digest;
}

/*
 * Numbers are missing below the one just applied.  What the dictionary has still, and no record
 * that waits will bring, has been there all the time: now is when the most of it can be told.
 */
static void trust_what_is_there(struct mt_stacks *s, uint32_t index, struct mirror *mirror)
{
	struct mt_reference *reference = mt_segments_reference(s->segments, index);

	for (uint32_t i = 0; reference && i < MT_DICTIONARY; i++)
		if (mirror->known[i].digest && is_there(reference, mirror, i))
			mirror->known[i].sure = mirror->applied;
}

/* Before a record is applied: what its number says about those before it. */
static void note_number(struct mt_stacks *s, uint32_t index, struct mirror *mirror,
			const struct waiting *w, bool key)
{
	bool gap = mirror->begun && mirror->generation == w->generation &&
		   w->seq != mirror->applied + 1;

	if (!mirror->begun || mirror->generation != w->generation) {
		memset(mirror->known, 0, sizeof(mirror->known));
		memset(mirror->past, 0, sizeof(mirror->past));
		mirror->has_missing = key = false;
	}
	mirror->begun = true;
	mirror->generation = w->generation;
	mirror->applied = w->seq;
	s->counts.gaps += gap;
	/* A key frame follows a reference that was void: perhaps left in the middle of its move,
	 * which may not have come as far as the dictionary. */
	if (gap || key) {
		mirror->has_missing = true;
		mirror->missing = w->seq - 1;
		trust_what_is_there(s, index, mirror);
	}
}

/* What the entry was is over with this record; node: MT_STOP_LOST if it came to nothing. */
static void learn(struct mirror *mirror, const struct waiting *w, uint32_t node)
{
	struct entry *entry = &mirror->known[w->entry];

	if (entry->digest)
		mirror->past[mirror->next_past++ % PAST_KEPT] = (struct past){
			.entry = w->entry,
			.valid = true,
			.node = entry->node,
			.from = entry->seq,
			.until = w->seq,
		};
	*entry = (struct entry){ 0 };
	if (node != MT_STOP_LOST)
		*entry = (struct entry){ w->digest, node, w->seq, w->seq };
}

static int tell_observer(const struct mt_stacks *s, const struct waiting *w,
			 const struct mt_space *space, const struct mt_window *window,
			 uint32_t node)
{
	struct mt_unwound_stack stack = {
		.window = window,
		.space = space,
		.digest = w->digest,
		.epoch = w->head.epoch,
		.node = node,
		.raw = w->raw,
	};

	if (!s->observe)
		return 0;
	/* A raw window's comes last. */
	if (w->raw)
		memcpy(&stack.digest, w->bytes + w->len - 8, sizeof(stack.digest));
	return s->observe(s->observe_ctx, &stack);
}

/* Is the record of the slot's owner?  Of one before, no event has named it. */
static bool is_owners(const struct slot *slot, const struct waiting *w)
{
	return !slot->claimed || (int16_t)(w->head.generation - slot->claim) >= 0;
}

/* Counts the node as a chain, and not as a part of one, if it was none before. */
static int count_chain(struct mt_stacks *s, uint32_t node)
{
	size_t word = node / 64, words = s->whole_words ? s->whole_words : 64;
	uint64_t bit = 1ULL << node % 64, *whole;

	while (words <= word)
		words *= 2;
	if (words > s->whole_words) {
		whole = reallocarray(s->whole, words, sizeof(*whole));
		if (!whole)
			return -ENOMEM;
		memset(whole + s->whole_words, 0, (words - s->whole_words) * sizeof(*whole));
		s->whole = whole;
		s->whole_words = words;
	}
	s->counts.chains += !(s->whole[word] & bit);
	s->whole[word] |= bit;
	return 0;
}

/* Decodes and unwinds one record; what does not verify becomes MT_STOP_LOST. */
static int decode(struct mt_stacks *s, uint32_t index, struct mt_decoder *decoder,
		  struct mt_space *space, const struct waiting *w, uint32_t *ret_node)
{
	struct mt_window window;
	int r;

	*ret_node = MT_STOP_LOST;
	r = mt_decode_window(decoder, &w->head, w->bytes, &window);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		s->counts.stale += r == -ESTALE;
		s->counts.mismatches += r == -EILSEQ;
		s->counts.malformed += r == -EBADMSG;
		return 0;
	}
	s->counts.window_bytes += window.end - window.start;
	r = mt_unwind(s->unwinder, space, &window, s->tree, ret_node);
	if (r == 0)
		r = count_chain(s, *ret_node);
	if (r == 0 && s->teach && is_owners(s->slots[index], w))
		r = mt_teach_chain(s->teach, index, w->head.epoch, s->unwinder, space, &window,
				   *ret_node);
	return r < 0 ? r : tell_observer(s, w, space, &window, *ret_node);
}

/* Applies the slot's first record. */
static int apply(struct mt_stacks *s, uint32_t index, struct slot *slot, struct mt_space *space)
{
	mt_cleanup(mt_freep) struct waiting *w = dequeue(s, slot, &slot->records);
	uint32_t node;
	int r;

	note_number(s, index, slot->mirror, w, w->head.kind == MT_STACK_KEY);
	r = decode(s, index, slot->mirror->decoder, space, w, &node);
	if (r < 0)
		return r;
	if (node == MT_STOP_LOST)
		lose_record(s, index, slot, w);
	learn(slot->mirror, w, node);
	return 0;
}

/* Nothing that may have been lost can have changed what was known at number since. */
static bool nothing_missing(const struct mirror *mirror, uint32_t since)
{
	return !mirror->has_missing || mirror->applied - since < mirror->applied - mirror->missing;
}

static uint32_t look_up_past(const struct mirror *mirror, uint16_t name, uint32_t seq)
{
	for (int i = 0; i < PAST_KEPT; i++) {
		const struct past *past = &mirror->past[i];

		if (past->valid && past->entry == name && (int32_t)(seq - past->from) >= 0 &&
		    (int32_t)(seq - past->until) < 0 && nothing_missing(mirror, past->from))
			return past->node;
	}
	return MT_STOP_LOST;
}

static uint32_t look_up(struct mt_stacks *s, uint32_t index, struct mirror *mirror, uint16_t name,
			uint32_t seq)
{
	struct mt_reference *reference = mt_segments_reference(s->segments, index);
	struct entry *entry = &mirror->known[name];
	/* The last records of the event's time are not here. */
	bool ahead = !mirror->begun || (int32_t)(seq - mirror->applied) > 0;
	bool overtaken = entry->seq != seq && is_until(seq, entry->seq);
	uint32_t node;

	if (!entry->digest || overtaken) {
		node = look_up_past(mirror, name, seq);
		if (node != MT_STOP_LOST || entry->digest)
			return node;
	}
	if (entry->digest && (ahead || !nothing_missing(mirror, entry->sure))) {
		if (reference && is_there(reference, mirror, name))
			entry->sure = mirror->applied;
		else
			entry->digest = 0;
	}
	if (entry->digest)
		return entry->node;
	lose_entry(s, index, mirror, name, seq);
	return MT_STOP_LOST;
}

static bool find_kept(const struct slot *slot, uint16_t number, uint32_t *ret_node)
{
	for (int i = 0; i < RAW_KEPT; i++) {
		if (slot->kept[i].valid && slot->kept[i].seq % MT_STACK_ALONE == number) {
			*ret_node = slot->kept[i].node;
			return true;
		}
	}
	return false;
}

/* The raw window with that number; those before it, which no event has named yet, are kept. */
static int resolve_raw(struct mt_stacks *s, uint32_t index, struct slot *slot,
		       struct mt_space *space, uint16_t number, uint32_t *ret_node)
{
	const uint16_t numbers = MT_STACK_ALONE, half = numbers / 2;

	while (!find_kept(slot, number, ret_node)) {
		mt_cleanup(mt_freep) struct waiting *w = NULL;
		uint32_t node;
		int r;

		if (!slot->raws.first ||
		    (uint16_t)(number - slot->raws.first->seq) % numbers >= half) {
			*ret_node = MT_STOP_LOST;
			return 0;
		}
		w = dequeue(s, slot, &slot->raws);
		r = decode(s, index, s->raw_decoder, space, w, &node);
		if (r < 0)
			return r;
		slot->kept[slot->next_kept++ % RAW_KEPT] = (struct raw_node){ .node = node,
									      .seq = w->seq,
									      .valid = true };
	}
	return 0;
}

static int resolve_known(struct mt_stacks *s, uint32_t index, struct slot *slot,
			 struct mt_space *space, uint16_t name, uint32_t seq, uint32_t *ret_node)
{
	int r = get_mirror(s, slot);

	while (r == 0 && slot->records.first && (int32_t)(seq - slot->records.first->seq) >= 0)
		r = apply(s, index, slot, space);
	if (r == 0)
		*ret_node = look_up(s, index, slot->mirror, name, seq);
	return r;
}

/* The chain that an event names by itself. */
static uint32_t learned_node(struct mt_stacks *s, uint32_t index, uint32_t name)
{
	if (!s->teach || !mt_teach_used(s->teach, index, name))
		return MT_STOP_LOST;
	s->counts.learned++;
	return name;
}

void mt_stacks_make_room(struct mt_stacks *s)
{
	uint32_t most = 0;
	struct slot *slot;

	for (uint32_t i = 1; i < MT_SLOTS; i++)
		if (s->slots[i] &&
		    (!s->slots[most] || s->slots[i]->waiting_bytes > s->slots[most]->waiting_bytes))
			most = i;
	slot = s->slots[most];
	while (slot && slot->waiting_bytes) {
		struct queue *queue = slot->records.first ? &slot->records : &slot->raws;
		mt_cleanup(mt_freep) struct waiting *w = dequeue(s, slot, queue);

		lose_record(s, most, slot, w);
		s->counts.dropped++;
	}
}

/* A chain that has to be looked for. */
static __attribute__((noinline)) int resolve(struct mt_stacks *s, uint32_t index,
					     struct mt_space *space, uint16_t name, uint32_t seq,
					     uint32_t *ret_node)
{
	struct slot *slot = get_slot(s, index);

	if (!slot)
		return -ENOMEM;
	if (name >= MT_STACK_ALONE)
		return resolve_raw(s, index, slot, space, name - MT_STACK_ALONE, ret_node);
	if (name < MT_DICTIONARY)
		return resolve_known(s, index, slot, space, name, seq, ret_node);
	*ret_node = MT_STOP_LOST;
	return 0;
}

int mt_stacks_resolve(struct mt_stacks *s, uint32_t index, struct mt_space *space, uint16_t name,
		      uint32_t seq, uint32_t *ret_node)
{
	uint32_t node = MT_STOP_LOST;
	int r = 0;

	if (name == MT_STACK_LEARNED) {
		s->counts.resolved++;
		node = learned_node(s, index, seq);
	} else if (name < MT_STACK_NONE) {
		s->counts.resolved++;
		r = resolve(s, index, space, name, seq, &node);
		if (r < 0)
			return r;
	} else if (name == (MT_STACK_NONE | MT_NONE_BOOTSTRAP)) {
		node = MT_STOP_BOOTSTRAP;
	} else if (name == (MT_STACK_NONE | MT_NONE_UNWANTED)) {
		node = MT_STOP_NONE;
	}
	s->counts.lost += node == MT_STOP_LOST;
	*ret_node = node;
	return 0;
}
