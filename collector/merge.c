/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * merge.c - see merge.h for the contract
 *
 * Invariants
 *   - turns[] is a heap by key, the smallest first, of the rings that have cells in this
 *     pass.  A ring's cells are handed on one after the other for as long as no other
 *     ring's turn comes; its key in the heap is set right after that.
 *   - A piece or a blob has no time of its own and is handed on as soon as it is reached, but
 *     for the pieces of a module record, which have the record's: what was allocated before
 *     a module changed is to be unwound with the old one.
 *   - A time later than that of the heads by more than a clock can be off is of another
 *     clock, or of none: such a cell is handed on as soon as it is reached, because nothing
 *     would come of waiting.
 *   - A cursor moves by whole cells, from a multiple of their size to one: it comes to its limit,
 *     and no cell lies across the ring's end.
 *   - A cell is copied once; key and callback see the same copy.  The tail that counts is
 *     our own, the one in the thread's page is for its writer.
 */
#include "collector/merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/clock.h"

/* Between a thread's clock and ours. */
#define CLOCKS_OFF_NS (1000 * 1000 * 1000ULL)

/* A tail that moves only at the end of a pass would have threads find less room than is. */
#define PUBLISH_CELLS 512

/* Where the merge is in a ring. */
struct cursor {
	uint64_t key; /* of cell, which is at at */
	uint64_t at;
	uint64_t limit;
	const char *cells;
	uint32_t slot;
	uint32_t unpublished;
	uint32_t taken; /* cells that are handed on with this one: those of a blob, or it alone */
	struct mt_cell cell;
};

struct turn {
	uint64_t key;
	struct cursor *cursor;
};

struct ring_state {
	uint64_t tail;	    /* the shared one is for the writer to read */
	uint64_t module_ns; /* of the module record whose pieces are being handed on */
	bool damaged;	    /* an impossible head was seen, and counted */
};

struct mt_merge {
	struct mt_segments *segments;
	struct ring_state *rings; /* MT_SLOTS of them */
	struct cursor *cursors;	  /* MT_SLOTS of them, the first n_cursors are in use */
	struct turn *turns;	  /* likewise */
	uint32_t n_cursors, n;
	uint64_t fullest_bytes;
	uint64_t latest_ns; /* no cell that the heads cover has a later time */
	uint64_t reached_ns;
	uint64_t damaged;
};

int mt_merge_new(struct mt_segments *segments, struct mt_merge **ret)
{
	mt_cleanup(mt_merge_freep) struct mt_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->segments = segments;
	m->rings = calloc(MT_SLOTS, sizeof(*m->rings));
	m->cursors = calloc(MT_SLOTS, sizeof(*m->cursors));
	m->turns = calloc(MT_SLOTS, sizeof(*m->turns));
	if (!m->rings || !m->cursors || !m->turns)
		return -ENOMEM;
	*ret = mt_take_ptr(m);
	return 0;
}

void mt_merge_free(struct mt_merge *m)
{
	if (!m)
		return;
	free(m->rings);
	free(m->cursors);
	free(m->turns);
	free(m);
}

uint64_t mt_merge_fullest_bytes(const struct mt_merge *m)
{
	return m->fullest_bytes;
}

uint64_t mt_merge_reached_ns(const struct mt_merge *m)
{
	return m->reached_ns;
}

uint64_t mt_merge_tail(const struct mt_merge *m, uint32_t slot)
{
	return m->rings[slot].tail;
}

uint64_t mt_merge_damaged(const struct mt_merge *m)
{
	return m->damaged;
}

static uint64_t key_of(struct ring_state *ring, const struct mt_cell *cell)
{
	if (MT_CELL_TYPE(cell->head) == MT_CELL_BLOB)
		return 0;
	if (MT_CELL_TYPE(cell->head) != MT_CELL_PIECE)
		return cell->w[0];
	if (MT_CELL_KIND(cell->head) != MT_RECORD_MODULE)
		return 0;
	if (MT_CELL_HALF(cell->head) == 0)
		ring->module_ns = cell->w[1];
	return ring->module_ns;
}

/* Copies the cell at which the cursor is; false if the ring ends before its blob does. */
static inline bool load(struct mt_merge *m, struct cursor *c)
{
	memcpy(&c->cell, c->cells + (c->at & (m->segments->ring_bytes - 1)), sizeof(c->cell));
	c->key = key_of(&m->rings[c->slot], &c->cell);
	if (c->key > m->latest_ns)
		c->key = 0;
	c->taken = 1;
	if (__builtin_expect(MT_CELL_TYPE(c->cell.head) != MT_CELL_BLOB, 1))
		return true;
	c->taken = mt_blob_cells(MT_CELL_WORD(c->cell.head));
	return c->taken <= (c->limit - c->at) / sizeof(c->cell);
}

void mt_merge_copy_blob(const struct mt_merge *m, void *ret)
{
	const struct cursor *c = m->turns[0].cursor;
	size_t at = (c->at + offsetof(struct mt_cell, w)) & (m->segments->ring_bytes - 1);
	size_t left = m->segments->ring_bytes - at, len = MT_CELL_WORD(c->cell.head);
	size_t first = len < left ? len : left;

	memcpy(ret, c->cells + at, first);
	memcpy((char *)ret + first, c->cells, len - first);
}

static void sift_down(struct mt_merge *m, uint32_t i)
{
	struct turn moving = m->turns[i];
	uint32_t child;

	while ((child = 2 * i + 1) < m->n) {
		if (child + 1 < m->n && m->turns[child + 1].key < m->turns[child].key)
			child++;
		if (moving.key <= m->turns[child].key)
			break;
		m->turns[i] = m->turns[child];
		i = child;
	}
	m->turns[i] = moving;
}

/* The key of the turn that is next after the first. */
static uint64_t second_key(const struct mt_merge *m)
{
	uint64_t key = m->n > 1 ? m->turns[1].key : UINT64_MAX;

	return m->n > 2 && m->turns[2].key < key ? m->turns[2].key : key;
}

/* Moves past what is on the ring, so that its thread finds room. */
static void skip(struct mt_merge *m, uint32_t slot, uint64_t head)
{
	m->rings[slot].tail = head;
	__atomic_store_n(&mt_segments_thread(m->segments, slot)->tail, head, __ATOMIC_RELEASE);
}

static void count_damage(struct mt_merge *m, uint32_t slot)
{
	m->damaged += !m->rings[slot].damaged;
	m->rings[slot].damaged = true;
}

static void give_up(struct mt_merge *m, uint32_t slot, uint64_t head)
{
	count_damage(m, slot);
	skip(m, slot, head);
}

static void add_cursor(struct mt_merge *m, uint32_t slot, uint64_t tail, uint64_t head)
{
	struct cursor *c = &m->cursors[m->n_cursors++];

	*c = (struct cursor){
		.slot = slot,
		.at = tail,
		.limit = head,
		.cells = (const char *)mt_segments_cells(m->segments, slot),
	};
	if (load(m, c))
		m->turns[m->n++] = (struct turn){ c->key, c };
	else
		give_up(m, slot, head);
}

static void look_at(struct mt_merge *m, uint32_t slot)
{
	struct mt_thread *thread = mt_segments_thread(m->segments, slot);
	uint64_t head = __atomic_load_n(&thread->head, __ATOMIC_ACQUIRE);
	uint64_t tail = m->rings[slot].tail;
	uint64_t fill = head - tail;

	if (!fill)
		return;
	/* The tail is where the ring was given up last, and that may be between two cells. */
	if (fill > m->segments->ring_bytes || (head | tail) % sizeof(struct mt_cell)) {
		give_up(m, slot, head);
		return;
	}
	if (fill > m->fullest_bytes)
		m->fullest_bytes = fill;
	add_cursor(m, slot, tail, head);
}

void mt_merge_skip(struct mt_merge *m)
{
	m->n = m->n_cursors = 0;
	for (uint32_t slot = 0; slot < m->segments->chunks_used * MT_CHUNK_SLOTS; slot++)
		if (m->segments->chunks[slot / MT_CHUNK_SLOTS].given)
			skip(m, slot,
			     __atomic_load_n(&mt_segments_thread(m->segments, slot)->head,
					     __ATOMIC_ACQUIRE));
	mt_segments_release(m->segments);
}

void mt_merge_heads(struct mt_merge *m)
{
	m->n = m->n_cursors = 0;
	m->fullest_bytes = 0;
	m->latest_ns = mt_clock_ns() + CLOCKS_OFF_NS;
	for (uint32_t c = 0; c < m->segments->chunks_used; c++) {
		if (!m->segments->chunks[c].given)
			continue;
		for (uint32_t i = 0; i < MT_CHUNK_SLOTS; i++)
			look_at(m, c * MT_CHUNK_SLOTS + i);
	}
	for (uint32_t i = m->n / 2; i-- > 0;)
		sift_down(m, i);
}

static void publish(struct mt_merge *m, struct cursor *c)
{
	struct mt_thread *thread = mt_segments_thread(m->segments, c->slot);

	if (!c->unpublished)
		return;
	m->rings[c->slot].tail = c->at;
	__atomic_store_n(&thread->tail, c->at, __ATOMIC_RELEASE);
	c->unpublished = 0;
}

/* Moves the cursor behind its cell, and all that belongs to that; false: there is no more. */
static inline bool advance(struct mt_merge *m, struct cursor *c)
{
	c->at += c->taken * sizeof(c->cell);
	c->unpublished += c->taken;
	if (c->at != c->limit && load(m, c)) {
		if (c->unpublished >= PUBLISH_CELLS)
			publish(m, c);
		return true;
	}
	if (c->at != c->limit) {
		count_damage(m, c->slot);
		c->at = c->limit;
	}
	publish(m, c);
	return false;
}

int64_t mt_merge_cells(struct mt_merge *m, uint64_t below_ns, uint64_t max_cells, mt_cell_fn fn,
		       void *ctx)
{
	uint64_t done = 0;
	int r = 0;

	while (m->n && m->turns[0].key < below_ns && done < max_cells && r >= 0) {
		struct cursor *c = m->turns[0].cursor;
		uint64_t second = second_key(m);
		bool more;

		do {
			r = fn(ctx, c->slot, &c->cell);
			done += c->taken;
			more = advance(m, c);
		} while (more && r >= 0 && done < max_cells && c->key <= second &&
			 c->key < below_ns);
		if (more)
			m->turns[0].key = c->key;
		else
			m->turns[0] = m->turns[--m->n];
		if (m->n)
			sift_down(m, 0);
	}
	for (uint32_t i = 0; i < m->n; i++)
		publish(m, m->turns[i].cursor);
	m->reached_ns = below_ns;
	if (m->n && m->turns[0].key < below_ns)
		m->reached_ns = m->turns[0].key;
	return r < 0 ? r : (int64_t)done;
}
