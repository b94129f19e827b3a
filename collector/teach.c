/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * teach.c - see teach.h for the contract
 *
 * Invariants
 *   - The areas are written in the order that wire/learned.h asks for, so that a reader never
 *     has a value that is not its key's.
 *   - Rows are there before the chain that needs them; one that has to make room for another
 *     makes its chains unknown, no more.
 *   - Only pages that something was put in are emptied: the others would become real by it.
 *   - A chain mostly has its outer frames in common with the one that was taught before.  Their
 *     part of the digest is known, and whoever was told of that chain has their rows, unless
 *     rows ever had to make room there.
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
/* So many chains a slot has at most because one other thread had them. */
#define TOLD_MAX (MT_LEARNED_CHAINS / 2)

#define ENTRIES (MT_LEARNED_ROWS + MT_LEARNED_CHAINS)
#define PAGE_ENTRIES (MT_PAGE_BYTES / sizeof(struct mt_learned_entry))
#define PAGES (ENTRIES / PAGE_ENTRIES)

_Static_assert(PAGES == 96, "a slot's pages are bits of a word");

enum status {
	STATUS_NEW,
	STATUS_SEEN,
	STATUS_NOT, /* can not be taught */
	STATUS_TAUGHT,
};

/* Of a node that was taught. */
struct pupil {
	uint64_t digest; /* in the process of that epoch, when it was taught last */
	uint32_t epoch;
	uint32_t slot; /* whose record that was */
};

struct lesson {
	bool begun;
	uint32_t epoch;
	uint64_t taught; /* chains that its thread had */
	uint64_t told;	 /* chains in all: those that others had, too */
	uint64_t used;	 /* events that named one */
	bool rows_lost;
	uint32_t turn;	   /* whose place is taken next */
	uint64_t pages[2]; /* of entries that something was put in */
};

/* The chain that was taught last, the outermost frame first. */
struct last {
	uint32_t epoch;
	uint32_t first; /* slot of the chunk */
	uint32_t told;	/* slots of the chunk, a bit each */
	uint32_t n;
	uint64_t begun; /* the digest's beginning */
	uint64_t pcs[MT_LEARNED_FRAMES], rows[MT_LEARNED_FRAMES];
	uint64_t digests[MT_LEARNED_FRAMES]; /* of the frame and all outer ones */
};

_Static_assert(MT_CHUNK_SLOTS <= 32, "a chunk's slots are bits of a word");

struct mt_teach {
	struct mt_segments *segments;
	struct lesson *lessons; /* of each slot */
	uint64_t point;
	uint8_t *statuses;    /* enum status, of each node */
	struct pupil *pupils; /* of each node; not written, nor memory, where none was taught */
	size_t n_nodes;
	struct mt_way way;
	struct last last;
};

static int choose_point(uint64_t *ret)
{
	do {
		if (getrandom(ret, sizeof(*ret), 0) != sizeof(*ret))
			return mt_neg_errno();
		*ret &= MT_LEARNED_PRIME;
	} while (!*ret || *ret == MT_LEARNED_PRIME);
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
	if (!t->lessons)
		return -ENOMEM;
	r = choose_point(&t->point);
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

static struct mt_learned_entry *entries_of(struct mt_learned *learned)
{
	return (struct mt_learned_entry *)mt_learned_rows(learned);
}

/* Empties the area, for that epoch. */
static void begin(struct mt_teach *t, struct lesson *lesson, struct mt_learned *learned,
		  uint32_t epoch)
{
	struct mt_learned_entry *entries = entries_of(learned);
	uint32_t seq = learned->seq;

	__atomic_store_n(&learned->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&learned->taught, 0, __ATOMIC_RELAXED);
	for (size_t page = 0; page < PAGES; page++)
		for (size_t i = 0; lesson->pages[page / 64] >> page % 64 & 1 && i < PAGE_ENTRIES;
		     i++)
			__atomic_store_n(&entries[page * PAGE_ENTRIES + i].key, 0,
					 __ATOMIC_RELAXED);
	learned->point = t->point;
	__atomic_store_n(&learned->epoch, epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&learned->seq, seq + 2, __ATOMIC_RELEASE);
	*lesson = (struct lesson){ .begun = true, .epoch = epoch };
	t->last.told = 0;
}

/* Puts an entry among the n from first on; whether another had to go. */
static bool put(struct lesson *lesson, struct mt_learned_entry *entries, size_t first, size_t n,
		uint64_t key, uint64_t value)
{
	uint64_t place = mt_learned_place(key, n);
	size_t at = first + ((place + lesson->turn++ % MT_LEARNED_PROBES) & (n - 1));
	bool lost;

	for (size_t i = MT_LEARNED_PROBES; i-- > 0;) {
		size_t probe = first + ((place + i) & (n - 1));

		if (entries[probe].key == key)
			return false;
		if (!entries[probe].key)
			at = probe;
	}
	lost = entries[at].key != 0;
	__atomic_store_n(&entries[at].key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&entries[at].value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&entries[at].key, key, __ATOMIC_RELEASE);
	lesson->pages[at / PAGE_ENTRIES / 64] |= 1ULL << at / PAGE_ENTRIES % 64;
	return lost;
}

static uint64_t row_of(struct mt_fast_row row)
{
	static const uint8_t kinds[] = {
		[MT_FAST_RSP] = MT_LEARNED_RSP,
		[MT_FAST_RBP] = MT_LEARNED_RBP,
		[MT_FAST_CFA_AT_RBP] = MT_LEARNED_CFA_AT_RBP,
		[MT_FAST_END] = MT_LEARNED_END,
	};

	return MT_LEARNED_ROW(kinds[row.kind], row.rbp, row.cfa);
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

/* Makes the way the last chain, of the slots of that chunk; returns how many outer frames it has
 * in common with the one before. */
static uint32_t move_on(struct mt_teach *t, uint32_t first, uint32_t epoch)
{
	uint64_t begun = t->way.stop == MT_STOP_END ? MT_LEARNED_ENDED : MT_LEARNED_TRUNCATED;
	struct last *last = &t->last;
	uint32_t common = 0;

	if (last->first != first || last->epoch != epoch)
		last->told = 0;
	else if (last->begun == begun)
		common = count_common(t);
	last->first = first;
	last->epoch = epoch;
	last->begun = begun;
	last->n = t->way.n;
	for (uint32_t n = common; n < last->n; n++) {
		uint64_t outer = n ? last->digests[n - 1] : begun;

		last->pcs[n] = t->way.pcs[last->n - 1 - n];
		last->rows[n] = row_of(t->way.rows[last->n - 1 - n]);
		last->digests[n] = mt_learned_digest_frame(outer, last->pcs[n], t->point);
	}
	return common;
}

/* Whether all that the chain needs is in the area already: its thread did not look again yet. */
static bool is_there(const struct mt_teach *t, const struct lesson *lesson,
		     const struct mt_learned *learned, uint32_t node)
{
	const struct pupil *pupil = &t->pupils[node];
	__u64 name;

	return t->statuses[node] == STATUS_TAUGHT && pupil->epoch == lesson->epoch &&
	       !lesson->rows_lost &&
	       mt_learned_find(mt_learned_chains(learned), MT_LEARNED_CHAINS, pupil->digest, &name);
}

/* Whether a chain is taught when it comes for the first time: where chains come again, it saves
 * a record; where they do not, teaching is all that comes of it. */
static bool is_diligent(const struct lesson *lesson)
{
	return lesson->taught < TRIALS || lesson->used > lesson->taught;
}

/* Puts the last chain into the slot's area, where so many of its outer frames have rows. */
static void teach_slot(struct mt_teach *t, uint32_t slot, uint32_t common, uint64_t digest,
		       uint32_t node)
{
	struct mt_learned *learned = mt_segments_learned(t->segments, slot);
	struct mt_learned_entry *entries = entries_of(learned);
	struct lesson *lesson = &t->lessons[slot];
	const struct last *last = &t->last;

	if (lesson->rows_lost)
		common = 0;
	for (uint32_t n = common; n < last->n; n++)
		lesson->rows_lost |= put(lesson, entries, 0, MT_LEARNED_ROWS, last->pcs[n],
					 last->rows[n]);
	put(lesson, entries, MT_LEARNED_ROWS, MT_LEARNED_CHAINS, digest, node);
	lesson->told++;
	__atomic_store_n(&learned->taught, 1, __ATOMIC_RELEASE);
}

/*
 * A chain that two threads of a process had, its others will have: those in the same chunk.  What
 * one had is told to the others as long as there is room for much more.
 */
static void teach(struct mt_teach *t, uint32_t slot, uint32_t node)
{
	uint32_t epoch = t->lessons[slot].epoch, first = slot - slot % MT_CHUNK_SLOTS;
	struct pupil *pupil = &t->pupils[node];
	bool again = t->statuses[node] == STATUS_TAUGHT && pupil->epoch == epoch &&
		     pupil->slot != slot;
	uint32_t common = move_on(t, first, epoch), before = t->last.told;

	*pupil = (struct pupil){
		.digest = mt_learned_digest_key(t->last.digests[t->last.n - 1]),
		.epoch = epoch,
		.slot = slot,
	};
	t->statuses[node] = STATUS_TAUGHT;
	t->lessons[slot].taught++;
	t->last.told = 0;
	for (uint32_t i = first; i < first + MT_CHUNK_SLOTS; i++) {
		const struct lesson *lesson = &t->lessons[i];
		uint32_t bit = 1U << (i - first);

		if (i != slot && (!lesson->begun || lesson->epoch != epoch ||
				  (!again && lesson->told >= TOLD_MAX)))
			continue;
		teach_slot(t, i, before & bit ? common : 0, pupil->digest, node);
		t->last.told |= bit;
	}
}

int mt_teach_chain(struct mt_teach *t, uint32_t slot, uint32_t epoch, struct mt_unwinder *unwinder,
		   const struct mt_space *space, const struct mt_window *window, uint32_t node)
{
	struct mt_learned *learned = mt_segments_learned(t->segments, slot);
	struct lesson *lesson = &t->lessons[slot];
	uint8_t *status;

	if (reserve(t, node) < 0)
		return -ENOMEM;
	status = &t->statuses[node];
	if (*status == STATUS_NOT)
		return 0;
	if (!lesson->begun || lesson->epoch != epoch)
		begin(t, lesson, learned, epoch);
	if (is_there(t, lesson, learned, node))
		return 0;
	if (*status == STATUS_NEW && !is_diligent(lesson))
		*status = STATUS_SEEN;
	else if (node >= MT_NODE_FIRST && mt_unwind_way(unwinder, space, window, &t->way))
		teach(t, slot, node);
	else if (*status != STATUS_TAUGHT) /* or events may name it yet */
		*status = STATUS_NOT;
	return 0;
}

bool mt_teach_used(struct mt_teach *t, uint32_t slot, uint32_t node)
{
	if (node >= t->n_nodes || t->statuses[node] != STATUS_TAUGHT)
		return false;
	t->lessons[slot].used++;
	return true;
}
