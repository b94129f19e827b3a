/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stacks.c - see stacks.h for the contract
 *
 * Invariants
 *   - A slot's waiting records are in the order in which they were emitted.
 *   - known[] mirrors the slot's dictionary after the records that were applied; it keeps
 *     what an entry was before its last change, for the event of a call that a signal
 *     handler's capture overtook between its last look at seq and its append.
 *   - seq counts up and wraps: it is compared by difference.
 */
#include "collector/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/format.h"
#include "base/cleanup.h"
#include "collector/decode.h"
#include "collector/unwind.h"
#include "wire/stack_record.h"

#define DETACHED_KEPT 16

struct waiting {
	struct waiting *next;
	uint32_t len;
	uint32_t seq;
	uint16_t kind;
	char bytes[] __attribute__((aligned(8)));
};

struct entry {
	uint32_t node, seq;
	uint32_t old_node, old_seq;
};

struct detached {
	uint32_t node;
	uint16_t number;
	bool valid;
};

struct slot {
	struct mt_decoder *decoder;
	struct waiting *first, **last;
	uint64_t waiting_bytes;
	struct entry known[MT_DICTIONARY];
	struct detached detached[DETACHED_KEPT];
	uint32_t next_detached;
};

struct mt_stacks {
	struct mt_segments *segments;
	struct mt_call_tree *tree;
	struct mt_unwinder *unwinder;
	struct slot **slots; /* MT_SLOTS of them, NULL until used */
	uint64_t waiting_bytes;
	struct mt_stacks_counts counts;
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
	r = mt_unwinder_new(&s->unwinder);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(s);
	return 0;
}

static void free_slot(struct slot *slot)
{
	while (slot->first) {
		struct waiting *next = slot->first->next;

		free(slot->first);
		slot->first = next;
	}
	mt_decoder_free(slot->decoder);
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
	mt_unwinder_free(s->unwinder);
	free(s);
}

void mt_stacks_counts(const struct mt_stacks *s, struct mt_stacks_counts *ret)
{
	*ret = s->counts;
}

static int get_slot(struct mt_stacks *s, uint32_t index, struct slot **ret)
{
	struct slot *slot = s->slots[index];
	int r;

	if (!slot) {
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		r = mt_decoder_new(s->segments->budget_bytes, &slot->decoder);
		if (r < 0) {
			free(slot);
			return r;
		}
		for (int i = 0; i < MT_DICTIONARY; i++)
			slot->known[i].node = slot->known[i].old_node = MT_STOP_LOST;
		slot->last = &slot->first;
		s->slots[index] = slot;
	}
	*ret = slot;
	return 0;
}

int mt_stacks_push(struct mt_stacks *s, uint32_t index, const void *record, size_t len)
{
	struct mt_stack_record head;
	struct waiting *waiting;
	struct slot *slot;
	int r;

	if (len < sizeof(head) || index >= MT_SLOTS) {
		s->counts.malformed++;
		return 0;
	}
	memcpy(&head, record, sizeof(head));
	if (head.len > len || head.len < sizeof(head) || len > MT_RECORD_MAX_BYTES) {
		s->counts.malformed++;
		return 0;
	}
	if (s->waiting_bytes + head.len > MT_STACKS_WAITING_BYTES)
		return -EAGAIN;
	r = get_slot(s, index, &slot);
	if (r < 0)
		return r;

	waiting = malloc(sizeof(*waiting) + head.len);
	if (!waiting)
		return -ENOMEM;
	*waiting = (struct waiting){ .len = head.len, .seq = head.seq, .kind = head.kind };
	memcpy(waiting->bytes, record, head.len);
	*slot->last = waiting;
	slot->last = &waiting->next;
	slot->waiting_bytes += head.len;
	s->waiting_bytes += head.len;
	s->counts.records++;
	s->counts.record_bytes += head.len;
	return 0;
}

static void drop_first(struct mt_stacks *s, struct slot *slot)
{
	struct waiting *first = slot->first;

	slot->first = first->next;
	if (!slot->first)
		slot->last = &slot->first;
	slot->waiting_bytes -= first->len;
	s->waiting_bytes -= first->len;
	free(first);
}

/* The slot's next record is to be a key frame, and the lost stack is to come again. */
static void resync(struct mt_stacks *s, uint32_t index, uint64_t digest)
{
	struct mt_reference *reference = mt_segments_reference(s->segments, index);
	uint64_t *entry = (uint64_t *)((char *)reference + MT_DICTIONARY_OFFSET) +
			  digest % MT_DICTIONARY;
	uint64_t expected = digest;

	__atomic_compare_exchange_n(entry, &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	__atomic_fetch_add(&reference->resync_asked, 1, __ATOMIC_RELEASE);
}

static void learn(struct slot *slot, const struct mt_stack_record *head, uint32_t node)
{
	struct entry *entry = &slot->known[head->digest % MT_DICTIONARY];

	if (head->kind == MT_STACK_KIND_DETACHED) {
		slot->detached[slot->next_detached++ % DETACHED_KEPT] = (struct detached){
			.node = node, .number = head->seq % MT_STACK_DETACHED, .valid = true
		};
		return;
	}
	entry->old_node = entry->node;
	entry->old_seq = entry->seq;
	entry->node = node;
	entry->seq = head->seq;
}

/* Decodes and unwinds one record; what does not verify becomes MT_STOP_LOST. */
static int apply(struct mt_stacks *s, uint32_t index, struct slot *slot, struct mt_space *space,
		 const struct waiting *waiting)
{
	const struct mt_stack_record *head = (const struct mt_stack_record *)waiting->bytes;
	uint32_t node = MT_STOP_LOST;
	struct mt_window window;
	int r;

	r = mt_decode_record(slot->decoder, waiting->bytes, waiting->len, &window);
	if (r < 0) {
		if (r == -ESTALE)
			s->counts.stale++;
		else if (r == -EILSEQ)
			s->counts.mismatches++;
		else
			s->counts.malformed++;
		resync(s, index, head->digest);
	} else {
		s->counts.window_bytes += window.end - window.start;
		r = mt_unwind(s->unwinder, space, &window, s->tree, &node);
		if (r < 0)
			return r;
	}
	learn(slot, head, node);
	return 0;
}

/* Whether an event that names (name, seq) comes after this record. */
static bool wanted(const struct waiting *waiting, uint32_t seq)
{
	return waiting->kind == MT_STACK_KIND_DETACHED || (int32_t)(seq - waiting->seq) >= 0;
}

static bool find_detached(const struct slot *slot, uint16_t number, uint32_t *ret_node)
{
	for (int i = 0; i < DETACHED_KEPT; i++) {
		if (slot->detached[i].valid && slot->detached[i].number == number) {
			*ret_node = slot->detached[i].node;
			return true;
		}
	}
	return false;
}

static uint32_t look_up(const struct slot *slot, uint16_t name, uint32_t seq)
{
	const struct entry *entry;
	uint32_t node;

	if (name >= MT_STACK_DETACHED)
		return find_detached(slot, name - MT_STACK_DETACHED, &node) ? node : MT_STOP_LOST;
	if (name >= MT_DICTIONARY)
		return MT_STOP_LOST;
	entry = &slot->known[name];
	return (int32_t)(seq - entry->seq) >= 0 ? entry->node : entry->old_node;
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
	while (slot && slot->first) {
		const struct waiting *first = slot->first;

		resync(s, most, ((const struct mt_stack_record *)first->bytes)->digest);
		s->counts.dropped++;
		drop_first(s, slot);
	}
}

int mt_stacks_resolve(struct mt_stacks *s, uint32_t index, struct mt_space *space, uint16_t name,
		      uint32_t seq, uint32_t *ret_node)
{
	struct slot *slot;
	uint32_t node;
	int r;

	if (name >= MT_STACK_NONE) {
		bool early = name == (MT_STACK_NONE | MT_NONE_BOOTSTRAP);

		*ret_node = early ? MT_STOP_BOOTSTRAP : MT_STOP_LOST;
		s->counts.lost += !early;
		return 0;
	}
	r = get_slot(s, index, &slot);
	if (r < 0)
		return r;
	while (slot->first && wanted(slot->first, seq)) {
		struct waiting *waiting = slot->first;

		r = apply(s, index, slot, space, waiting);
		drop_first(s, slot);
		if (r < 0)
			return r;
	}
	node = look_up(slot, name, seq);
	s->counts.lost += node == MT_STOP_LOST;
	*ret_node = node;
	return 0;
}
