/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * teach.c - see teach.h for the contract
 *
 * Invariants
 *   - What targets read is written in the order that wire/learned.h asks for, so that a reader
 *     never has a value that is not its key's.
 *   - A slot has one area, those in one epoch the same one; so there is always one for a slot
 *     that has left its own.  What an epoch knows lasts as long as nobody needs its area.
 *   - Rows are there before the chain that needs them; one that has to make room for another
 *     makes its chains unknown, no more.
 *   - Only pages that something was put in are emptied: the others would become real by it.
 *   - A chain mostly has its outer frames in common with the one that was taught before.  Their
 *     part of the digest is known, and their rows are there, in the same epoch of the same area,
 *     unless rows ever had to make room.
 */
#include "collector/teach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Chains that are taught before it is asked whether that pays. */
#define TRIALS 256
#define PAGE_ENTRIES (MT_PAGE_BYTES / sizeof(struct mt_learned_entry))
#define PAGES (MT_LEARNED_ENTRIES / PAGE_ENTRIES)

_Static_assert(PAGES == 96, "an area's pages are bits of a word");

enum status {
	STATUS_NEW,
	STATUS_SEEN,
	STATUS_NOT, /* can not be taught */
	STATUS_TAUGHT,
};

/* Of a node that was taught. */
struct pupil {
	uint64_t digest; /* in the epoch in which it was taught last */
	uint32_t epoch;
};

/* Of an area. */
struct lesson {
	uint32_t slots; /* whose it is */
	uint32_t epoch;
	bool begun;
	bool rows_lost;
	uint32_t filled;   /* places of chains, at most */
	uint64_t taught;   /* chains */
	uint64_t used;	   /* events that named one */
	uint32_t turn;	   /* whose place is taken next */
	uint64_t pages[2]; /* of entries that something was put in */
};

/* Of a slot. */
struct seat {
	bool taken;
	uint32_t area;
};

/* The chain that was taught last, the outermost frame first. */
struct last {
	uint32_t epoch;
	uint32_t lesson; /* its index */
	uint32_t n;
	uint64_t end; /* MT_LEARNED_ENDED, MT_LEARNED_TRUNCATED */
	uint64_t pcs[MT_LEARNED_FRAMES], rows[MT_LEARNED_FRAMES];
	uint64_t digests[MT_LEARNED_FRAMES]; /* of the frame and all outer ones */
};

struct mt_teach {
	struct mt_segments *segments;
	struct lesson *lessons; /* of each area: MT_CHUNK_SLOTS for each chunk */
	struct seat *seats;	/* of each slot */
	uint64_t powers[MT_LEARNED_FRAMES];
	uint8_t *statuses;    /* enum status, of each node */
	struct pupil *pupils; /* of each node; not written, nor memory, where none was taught */
	size_t n_nodes;
	struct mt_way way;
	struct last last;
};

static int choose_point(uint64_t *ret_powers)
{
	uint64_t point;

	do {
		if (getrandom(&point, sizeof(point), 0) != sizeof(point))
			return mt_neg_errno();
		point &= MT_LEARNED_PRIME;
	} while (!point || point == MT_LEARNED_PRIME);
	ret_powers[0] = point;
	for (size_t i = 1; i < MT_LEARNED_FRAMES; i++)
		ret_powers[i] = mt_learned_times(ret_powers[i - 1], point);
	return 0;
}

int mt_teach_new(struct mt_segments *segments, struct mt_teach **ret)
{
	mt_cleanup(mt_teach_freep) struct mt_teach *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->segments = segments;
	t->lessons = calloc(MT_SLOTS, sizeof(*t->lessons));
	t->seats = calloc(MT_SLOTS, sizeof(*t->seats));
	if (!t->lessons || !t->seats)
		return -ENOMEM;
	r = choose_point(t->powers);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(t);
	return 0;
}

void mt_teach_free(struct mt_teach *t)
{
	if (!t)
		return;
	free(t->lessons);
	free(t->seats);
	free(t->statuses);
	free(t->pupils);
	free(t);
}

/* Room for what is known of the node. */
static int reserve(struct mt_teach *t, uint32_t node)
{
	size_t n = t->n_nodes ? t->n_nodes : 1024;
	struct pupil *pupils;
	uint8_t *statuses;

	if (node < t->n_nodes)
		return 0;
	while (n <= node)
		n *= 2;
	pupils = reallocarray(t->pupils, n, sizeof(*pupils));
	if (!pupils)
		return -ENOMEM;
	t->pupils = pupils;
	statuses = realloc(t->statuses, n);
	if (!statuses)
		return -ENOMEM;
	memset(statuses + t->n_nodes, STATUS_NEW, n - t->n_nodes);
	t->statuses = statuses;
	t->n_nodes = n;
	return 0;
}

static struct mt_learned_entry *entries_of(struct mt_learned *learned, uint32_t area)
{
	return (struct mt_learned_entry *)mt_learned_rows(learned, area);
}

static void empty(struct lesson *lesson, struct mt_learned *learned, uint32_t area)
{
	struct mt_learned_entry *entries = entries_of(learned, area);

	__atomic_store_n(&learned->places[area], 0, __ATOMIC_RELAXED);
	for (size_t page = 0; page < PAGES; page++)
		for (size_t i = 0; lesson->pages[page / 64] >> page % 64 & 1 && i < PAGE_ENTRIES;
		     i++)
			__atomic_store_n(&entries[page * PAGE_ENTRIES + i].key, 0,
					 __ATOMIC_RELAXED);
}

/* The area of the epoch among those of a chunk, or else one that is nobody's. */
static uint32_t find_area(const struct lesson *lessons, uint32_t epoch)
{
	uint32_t nobodys = 0;

	for (uint32_t i = MT_CHUNK_SLOTS; i-- > 0;) {
		if (lessons[i].begun && lessons[i].epoch == epoch)
			return i;
		if (!lessons[i].slots && (lessons[nobodys].slots || !lessons[i].begun))
			nobodys = i;
	}
	return nobodys;
}

/* Gives the slot the area of another epoch. */
static void move(struct mt_teach *t, uint32_t slot, uint32_t epoch)
{
	struct mt_learned *learned = mt_segments_learned(t->segments, slot);
	struct mt_learned_slot *there = &learned->slots[slot % MT_CHUNK_SLOTS];
	struct lesson *lessons = &t->lessons[slot - slot % MT_CHUNK_SLOTS];
	struct seat *seat = &t->seats[slot];
	uint32_t seq = there->seq, area;

	__atomic_store_n(&there->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (seat->taken)
		lessons[seat->area].slots--;
	area = find_area(lessons, epoch);
	if (!lessons[area].begun || lessons[area].epoch != epoch) {
		empty(&lessons[area], learned, area);
		if (!learned->powers[0])
			memcpy(learned->powers, t->powers, sizeof(t->powers));
		lessons[area] = (struct lesson){ .begun = true, .epoch = epoch };
	}
	lessons[area].slots++;
	*seat = (struct seat){ .taken = true, .area = area };
	__atomic_store_n(&there->epoch, epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&there->area, area, __ATOMIC_RELAXED);
	__atomic_store_n(&there->seq, seq + 2, __ATOMIC_RELEASE);
}

/* Where the key is among n entries, or where it would be put; or -1: others have all its places. */
static int64_t find_place(const struct mt_learned_entry *entries, size_t n, uint64_t place,
			  uint64_t key)
{
	for (size_t i = 0; i < MT_LEARNED_PROBES; i++) {
		size_t at = (place + i) & (n - 1);

		if (!entries[at].key || entries[at].key == key)
			return (int64_t)at;
	}
	return -1;
}

/* Puts an entry among the n from first on; whether another had to go. */
static bool put(struct lesson *lesson, struct mt_learned_entry *entries, size_t first, size_t n,
		uint64_t place, uint64_t key, uint64_t value)
{
	int64_t found = find_place(entries + first, n, place, key);
	bool lost = found < 0;
	size_t at = first;

	at += lost ? (place + lesson->turn++ % MT_LEARNED_PROBES) & (n - 1) : (size_t)found;
	if (entries[at].key == key)
		return false;
	__atomic_store_n(&entries[at].key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&entries[at].value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&entries[at].key, key, __ATOMIC_RELEASE);
	lesson->pages[at / PAGE_ENTRIES / 64] |= 1ULL << at / PAGE_ENTRIES % 64;
	return lost;
}

static bool put_chain(struct lesson *lesson, struct mt_learned_entry *entries, size_t places,
		      uint64_t key, uint32_t node)
{
	return put(lesson, entries, MT_LEARNED_ROWS, places, mt_learned_chain_place(key), key,
		   node);
}

static uint64_t row_of(struct mt_fast_row row)
{
	static const uint8_t kinds[] = {
		[MT_FAST_RSP] = MT_LEARNED_RSP,
		[MT_FAST_RBP] = MT_LEARNED_RBP,
		[MT_FAST_CFA_AT_RBP] = MT_LEARNED_CFA_AT_RBP,
		[MT_FAST_END] = MT_LEARNED_END,
	};

	return MT_LEARNED_ROW(kinds[row.kind], 8 * row.rbp, 8 * row.cfa);
}

/* How many of the way's frames, from the outermost on, are those of the last chain. */
static uint32_t count_common(const struct mt_teach *t)
{
	const struct last *last = &t->last;
	uint32_t n = 0, i;

	for (; n < last->n && n < t->way.n; n++) {
		i = t->way.n - 1 - n;
		if (t->way.pcs[i] != last->pcs[n] || row_of(t->way.rows[i]) != last->rows[n])
			break;
	}
	return n;
}

/* Makes the way the last chain; returns how many outer frames it has in common with the one before,
 * of the same lesson in the same epoch. */
static uint32_t move_on(struct mt_teach *t, uint32_t lesson, uint32_t epoch)
{
	uint64_t end = t->way.stop == MT_STOP_END ? MT_LEARNED_ENDED : MT_LEARNED_TRUNCATED;
	struct last *last = &t->last;
	uint32_t common = 0;

	if (last->lesson == lesson && last->epoch == epoch && last->end == end)
		common = count_common(t);
	last->lesson = lesson;
	last->epoch = epoch;
	last->end = end;
	last->n = t->way.n;
	for (uint32_t n = common; n < last->n; n++) {
		uint64_t outer = n ? last->digests[n - 1] : end;

		last->pcs[n] = t->way.pcs[last->n - 1 - n];
		last->rows[n] = row_of(t->way.rows[last->n - 1 - n]);
		last->digests[n] = mt_learned_digest_frame(outer, last->pcs[n], t->powers[n]);
	}
	return common;
}

/* Whether all that the chain needs is in the area already: its thread did not look again yet. */
static bool is_there(const struct mt_teach *t, const struct lesson *lesson,
		     const struct mt_learned *learned, uint32_t area, uint32_t node)
{
	const struct pupil *pupil = &t->pupils[node];
	__u64 name;

	return t->statuses[node] == STATUS_TAUGHT && pupil->epoch == lesson->epoch &&
	       !lesson->rows_lost && learned->places[area] &&
	       mt_learned_find_chain(mt_learned_chains(learned, area), learned->places[area],
				     pupil->digest, &name);
}

/* Whether a chain is taught when it comes for the first time: where chains come again, it saves
 * a record; where they do not, teaching is all that comes of it. */
static bool is_diligent(const struct lesson *lesson)
{
	return lesson->taught < TRIALS || lesson->used > lesson->taught;
}

/* From even to odd, and back: the slots of the area may not, or may, look into it. */
static void step_seqs(const struct mt_teach *t, struct mt_learned *learned, uint32_t first_slot,
		      uint32_t area)
{
	for (uint32_t i = 0; i < MT_CHUNK_SLOTS; i++) {
		const struct seat *seat = &t->seats[first_slot + i];
		uint32_t *seq = &learned->slots[i].seq;

		if (seat->taken && seat->area == area)
			__atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Twice as many places for the area's chains.  Where there is no memory for it, it has to do with
 * those that it has. */
static void grow(const struct mt_teach *t, struct lesson *lesson, struct mt_learned *learned,
		 uint32_t first_slot, uint32_t area)
{
	struct mt_learned_entry *entries = entries_of(learned, area),
				*chains = entries + MT_LEARNED_ROWS, *copy;
	uint32_t n = learned->places[area];

	copy = reallocarray(NULL, n, sizeof(*copy));
	if (!copy)
		return;
	memcpy(copy, chains, n * sizeof(*copy));
	step_seqs(t, learned, first_slot, area);
	memset(chains, 0, n * sizeof(*chains));
	learned->places[area] = 2 * n;
	lesson->filled = 0;
	for (uint32_t i = 0; i < n; i++)
		if (copy[i].key)
			lesson->filled += !put_chain(lesson, entries, 2 * n, copy[i].key,
						     (uint32_t)copy[i].value);
	step_seqs(t, learned, first_slot, area);
	free(copy);
}

/* Puts the way, and the chain's name, into the area. */
static void teach(struct mt_teach *t, uint32_t first_slot, uint32_t area, uint32_t node)
{
	struct mt_learned *learned = mt_segments_learned(t->segments, first_slot);
	struct mt_learned_entry *entries = entries_of(learned, area);
	struct lesson *lesson = &t->lessons[first_slot + area];
	uint32_t common = move_on(t, first_slot + area, lesson->epoch);
	const struct last *last = &t->last;
	uint64_t key = mt_learned_digest_key(last->digests[last->n - 1]);

	t->pupils[node] = (struct pupil){ .digest = key, .epoch = lesson->epoch };
	t->statuses[node] = STATUS_TAUGHT;
	for (uint32_t n = lesson->rows_lost || !lesson->taught ? 0 : common; n < last->n; n++)
		lesson->rows_lost |= put(lesson, entries, 0, MT_LEARNED_ROWS,
					 mt_learned_row_place(last->pcs[n]), last->pcs[n],
					 last->rows[n]);
	if (!learned->places[area])
		__atomic_store_n(&learned->places[area], MT_LEARNED_CHAINS_MIN, __ATOMIC_RELEASE);
	else if (learned->places[area] < MT_LEARNED_CHAINS &&
		 (lesson->filled >= learned->places[area] / 2 ||
		  find_place(entries + MT_LEARNED_ROWS, learned->places[area],
			     mt_learned_chain_place(key), key) < 0))
		grow(t, lesson, learned, first_slot, area);
	lesson->filled += !put_chain(lesson, entries, learned->places[area], key, node);
	lesson->taught++;
}

int mt_teach_chain(struct mt_teach *t, uint32_t slot, uint32_t epoch, struct mt_unwinder *unwinder,
		   const struct mt_space *space, const struct mt_window *window, uint32_t node)
{
	const struct mt_learned *learned = mt_segments_learned(t->segments, slot);
	uint32_t first_slot = slot - slot % MT_CHUNK_SLOTS;
	const struct seat *seat = &t->seats[slot];
	const struct lesson *lesson;
	uint8_t *status;

	if (reserve(t, node) < 0)
		return -ENOMEM;
	status = &t->statuses[node];
	if (*status == STATUS_NOT)
		return 0;
	if (!seat->taken || t->lessons[first_slot + seat->area].epoch != epoch)
		move(t, slot, epoch);
	lesson = &t->lessons[first_slot + seat->area];
	if (is_there(t, lesson, learned, seat->area, node))
		return 0;
	if (*status == STATUS_NEW && !is_diligent(lesson))
		*status = STATUS_SEEN;
	else if (node >= MT_NODE_FIRST && mt_unwind_way(unwinder, space, window, &t->way))
		teach(t, first_slot, seat->area, node);
	else if (*status != STATUS_TAUGHT) /* or events may name it yet */
		*status = STATUS_NOT;
	return 0;
}

bool mt_teach_used(struct mt_teach *t, uint32_t slot, uint32_t node)
{
	if (node >= t->n_nodes || t->statuses[node] != STATUS_TAUGHT)
		return false;
	t->lessons[slot - slot % MT_CHUNK_SLOTS + t->seats[slot].area].used++;
	return true;
}
