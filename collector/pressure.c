/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pressure.c - see pressure.h for the contract
 *
 * Invariants
 *   - Latch cleared, then the futex word moved, then woken, each a full barrier: a thread that
 *     saw the latch set read the word before that, and does not sleep through the release
 *     (preload/ring.c has the thread's half, tests/model/park.py all interleavings).
 *   - Processes are continued after the latch is cleared: none of them finds the old episode.
 *   - Only this clears the latch, while the recording lasts.  One that is set again right
 *     after that is the next episode, seen before the next pass.
 *   - The snapshot is from before the heads that the pass takes, so that one pass drains it,
 *     if nothing on it is being written, or is more than a pass may hand on.
 */
#include "collector/pressure.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/clock.h"

struct mt_pressure {
	struct mt_pressure_config config;
	uint64_t episode; /* as it was latched; 0: none is on */
	uint64_t begin_ns;
	uint64_t last_release_ns;
	uint64_t n_episodes;
	uint32_t most_paused;
	bool stopped;
	bool gathering; /* drained, and waiting for who will park */
	/* The snapshot: bytes put on each ring, ever. */
	uint64_t *heads; /* MT_SLOTS of them, those below n_slots are of this episode */
	uint32_t n_slots;
	uint64_t stacks, lives;
	uint64_t *released; /* the same, at the last release */
	uint64_t last_episode;
	struct mt_stats_pause *paused;
	uint32_t n_paused, paused_room;
};

int mt_pressure_new(const struct mt_pressure_config *config, struct mt_pressure **ret)
{
	mt_cleanup(mt_pressure_freep) struct mt_pressure *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->heads = calloc(MT_SLOTS, sizeof(*p->heads));
	p->released = calloc(MT_SLOTS, sizeof(*p->released));
	if (!p->heads || !p->released)
		return -ENOMEM;
	*ret = mt_take_ptr(p);
	return 0;
}

void mt_pressure_free(struct mt_pressure *p)
{
	if (!p)
		return;
	free(p->paused);
	free(p->heads);
	free(p->released);
	free(p);
}

bool mt_pressure_is_on(const struct mt_pressure *p)
{
	return p->episode != 0;
}

bool mt_pressure_is_gathering(const struct mt_pressure *p)
{
	return p->gathering;
}

uint64_t mt_pressure_episodes(const struct mt_pressure *p)
{
	return p->n_episodes;
}

uint32_t mt_pressure_most_paused(const struct mt_pressure *p)
{
	return p->most_paused;
}

static uint64_t head_of(const struct mt_pressure *p, uint32_t slot)
{
	return __atomic_load_n(&mt_segments_thread(p->config.segments, slot)->head,
			       __ATOMIC_ACQUIRE);
}

static bool is_given(const struct mt_pressure *p, uint32_t slot)
{
	return p->config.segments->chunks[slot / MT_CHUNK_SLOTS].given;
}

static void take_snapshot(struct mt_pressure *p)
{
	struct mt_probes_ring stacks, life;

	p->n_slots = p->config.segments->chunks_used * MT_CHUNK_SLOTS;
	for (uint32_t slot = 0; slot < p->n_slots; slot++)
		p->heads[slot] = is_given(p, slot) ? head_of(p, slot) : 0;
	if (!p->config.probes)
		return;
	mt_probes_rings(p->config.probes, &stacks, &life);
	p->stacks = stacks.produced;
	p->lives = life.produced;
}

static void hold_process(void *ctx, uint32_t tgid)
{
	struct mt_pressure *p = ctx;

	/* One that can not be held goes on. */
	(void)mt_holds_take(p->config.holds, tgid);
}

/* Stops the processes that are known by now, and are not stopped yet. */
static void hold_processes(struct mt_pressure *p)
{
	if (!p->config.holds || p->config.segments->pause != MT_PAUSE_SIGNAL)
		return;
	mt_processes_each(p->config.processes, hold_process, p);
	mt_holds_seal(p->config.holds);
}

void mt_pressure_look(struct mt_pressure *p)
{
	uint64_t episode = __atomic_load_n(&p->config.segments->control->latch, __ATOMIC_ACQUIRE);

	if (p->stopped || !episode)
		return;
	if (!p->episode) {
		p->episode = episode;
		p->begin_ns = mt_clock_ns();
		p->n_paused = 0;
		hold_processes(p);
		take_snapshot(p);
		return;
	}
	/* Forks that were not known when it began. */
	hold_processes(p);
}

/* A ring that is empty is drained, whatever its head was once. */
static bool is_drained(const struct mt_pressure *p)
{
	struct mt_probes_ring stacks, life;

	for (uint32_t slot = 0; slot < p->n_slots; slot++) {
		uint64_t tail = mt_merge_tail(p->config.merge, slot);

		if ((int64_t)(p->heads[slot] - tail) > 0 && is_given(p, slot) &&
		    head_of(p, slot) != tail)
			return false;
	}
	if (!p->config.probes)
		return true;
	mt_probes_rings(p->config.probes, &stacks, &life);
	return stacks.consumed >= p->stacks && life.consumed >= p->lives;
}

static uint64_t parked_in(const struct mt_pressure *p, uint32_t slot)
{
	return __atomic_load_n(&mt_segments_thread(p->config.segments, slot)->parked_in,
			       __ATOMIC_ACQUIRE);
}

/* It has put something on its ring since the last release, or was let go by that. */
static bool is_busy(const struct mt_pressure *p, uint32_t slot)
{
	return head_of(p, slot) != p->released[slot] ||
	       (p->last_episode && parked_in(p, slot) == p->last_episode);
}

/*
 * Does a busy thread run on?  It parks when it comes to its next event, but perhaps it is not its
 * turn to run, or it is done with allocating: it is waited for as long as the configuration says,
 * and then no more until it does something.
 */
static bool is_gathering(const struct mt_pressure *p)
{
	if (p->config.segments->pause != MT_PAUSE_FUTEX || !p->config.gather_ns ||
	    mt_clock_ns() - p->begin_ns >= p->config.gather_ns)
		return false;
	for (uint32_t slot = 0; slot < p->n_slots; slot++)
		if (is_given(p, slot) && parked_in(p, slot) != p->episode && is_busy(p, slot) &&
		    mt_segments_slot_held(p->config.segments, slot))
			return true;
	return false;
}

static void add_paused(struct mt_pressure *p, uint32_t tgid, uint64_t paused_ns)
{
	if (!tgid || !paused_ns)
		return;
	if (p->n_paused == p->paused_room) {
		uint32_t room = p->paused_room ? 2 * p->paused_room : 64;
		struct mt_stats_pause *more = realloc(p->paused, room * sizeof(*more));

		if (!more)
			return; /* the row will be short */
		p->paused = more;
		p->paused_room = room;
	}
	p->paused[p->n_paused++] = (struct mt_stats_pause){ tgid, paused_ns };
}

static int by_tgid(const void *a, const void *b)
{
	const struct mt_stats_pause *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->paused_ns > y->paused_ns ? -1 : x->paused_ns < y->paused_ns;
}

/* Of each process the thread that was paused longest. */
static void sort_paused(struct mt_pressure *p)
{
	uint32_t n = 0;

	if (!p->n_paused)
		return;
	qsort(p->paused, p->n_paused, sizeof(*p->paused), by_tgid);
	for (uint32_t i = 0; i < p->n_paused; i++)
		if (!n || p->paused[n - 1].tgid != p->paused[i].tgid)
			p->paused[n++] = p->paused[i];
	p->n_paused = n;
}

/* Whose threads have parked; they say so themselves, in their heads. */
static void note_parked(struct mt_pressure *p, uint64_t latch_ns, uint64_t release_ns)
{
	uint32_t n_slots = p->config.segments->chunks_used * MT_CHUNK_SLOTS;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		const struct mt_thread *thread;
		uint64_t parked_ns;

		if (!is_given(p, slot))
			continue;
		thread = mt_segments_thread(p->config.segments, slot);
		if (parked_in(p, slot) != p->episode)
			continue;
		parked_ns = __atomic_load_n(&thread->parked_ns, __ATOMIC_RELAXED);
		if (parked_ns < latch_ns)
			parked_ns = latch_ns;
		if (parked_ns < release_ns)
			add_paused(p, mt_processes_tgid(p->config.processes, slot),
				   release_ns - parked_ns);
	}
}

/* Not before the last release, and before it was seen. */
static uint64_t latch_ns_of(const struct mt_pressure *p)
{
	uint64_t ns = mt_latch_ns(p->episode, p->begin_ns);

	if (ns < p->last_release_ns)
		ns = p->last_release_ns;
	return ns < p->begin_ns ? ns : p->begin_ns - 1;
}

uint64_t mt_pressure_running_ns(const struct mt_pressure *p, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t from_ns = since_ns > p->last_release_ns ? since_ns : p->last_release_ns;
	uint64_t until_ns = p->episode ? latch_ns_of(p) : now_ns;

	return until_ns > from_ns ? until_ns - from_ns : 0;
}

static void on_let_go(void *ctx, uint32_t tgid, uint64_t paused_ns)
{
	add_paused(ctx, tgid, paused_ns);
}

static void release(struct mt_pressure *p)
{
	struct mt_pressure_episode episode = {
		.ring = MT_LATCH_RING(p->episode),
		.slot = MT_LATCH_SLOT(p->episode),
		.pause = p->config.segments->pause,
		.latch_ns = latch_ns_of(p),
	};

	episode.release_ns = mt_clock_ns();
	if (episode.pause == MT_PAUSE_FUTEX)
		note_parked(p, episode.latch_ns, episode.release_ns);
	for (uint32_t slot = 0; slot < p->n_slots; slot++)
		p->released[slot] = is_given(p, slot) ? head_of(p, slot) : 0;
	p->last_episode = p->episode;
	p->episode = 0;
	p->gathering = false;
	mt_segments_release(p->config.segments);
	if (p->config.holds)
		mt_holds_drop(p->config.holds, on_let_go, p);
	if (episode.pause == MT_PAUSE_SIGNAL)
		episode.release_ns = mt_clock_ns();
	p->last_release_ns = episode.release_ns;
	p->n_episodes++;
	sort_paused(p);
	if (p->n_paused > p->most_paused)
		p->most_paused = p->n_paused;
	episode.processes = p->paused;
	episode.n_processes = p->n_paused;
	if (p->config.on_episode)
		p->config.on_episode(p->config.ctx, &episode);
	if (p->config.holds && p->config.on_released)
		p->config.on_released(p->config.ctx);
}

void mt_pressure_settle(struct mt_pressure *p)
{
	if (!p->episode || !is_drained(p))
		return;
	p->gathering = is_gathering(p);
	if (!p->gathering)
		release(p);
}

void mt_pressure_stop(struct mt_pressure *p)
{
	p->stopped = true;
	if (p->episode)
		release(p);
	else
		mt_segments_release(p->config.segments);
}
