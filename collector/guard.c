/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guard.c - see guard.h for the contract
 *
 * Invariants
 *   - A process gets a signal by a pidfd, and only if that is the one that was found to be of the
 *     tree, by its start: a number that is used again gets none.
 *   - An episode is known by the latch's word: one that was released and is latched again
 *     begins to count anew.  It counts from when we saw it: the time in the word is what a
 *     target has written.
 */
#include "collector/guard.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"
#include "collector/pidfd.h"
#include "collector/proc_state.h"

#define TICK_MS 50
/* Of processes that fork while they are being killed. */
#define ROUNDS_MAX 50
#define ROUND_NS (10 * 1000 * 1000L)

int mt_guard_open(struct mt_guard *g, int *fds, uint64_t timeout_ns, pid_t root, int directory)
{
	mt_cleanup(mt_closep) int control = mt_take_fd(&fds[MT_GUARD_CONTROL]);
	mt_cleanup(mt_closep) int holds = mt_take_fd(&fds[MT_GUARD_HOLDS]);
	void *at;

	*g = (struct mt_guard){ .timeout_ns = timeout_ns, .root = root };
	/* Without marks the command alone can be ended, and what has it for a parent. */
	if (timeout_ns != UINT64_MAX)
		(void)mt_place_mark(directory, &g->marks);
	if (control >= 0) {
		at = mmap(NULL, MT_PAGE_BYTES, PROT_READ, MAP_SHARED, control, 0);
		if (at == MAP_FAILED)
			return mt_neg_errno();
		g->control = at;
	}
	if (holds >= 0) {
		at = mmap(NULL, sizeof(*g->holds), PROT_READ | PROT_WRITE, MAP_SHARED, holds, 0);
		if (at == MAP_FAILED)
			return mt_neg_errno();
		g->holds = at;
	}
	return 0;
}

void mt_guard_close(struct mt_guard *g)
{
	if (g->control)
		munmap((void *)g->control, MT_PAGE_BYTES);
	if (g->holds)
		munmap(g->holds, sizeof(*g->holds));
	g->control = NULL;
	g->holds = NULL;
}

int mt_guard_wait_ms(const struct mt_guard *g)
{
	return g->control && g->timeout_ns != UINT64_MAX ? TICK_MS : -1;
}

static bool too_long(struct mt_guard *g)
{
	uint64_t latch = __atomic_load_n(&g->control->latch, __ATOMIC_RELAXED);
	uint64_t now_ns = mt_clock_ns();

	if (latch != g->latch) {
		g->latch = latch;
		g->since_ns = now_ns;
	}
	return latch && now_ns - g->since_ns > g->timeout_ns;
}

/* The processes there are, with their parents. */
struct family {
	struct member {
		uint32_t tgid, parent;
		uint64_t start;
		bool in;
	} * members;
	size_t n, room;
};

static bool add_member(struct family *family, uint32_t tgid)
{
	size_t room = family->room ? 2 * family->room : 256;
	struct member *more;

	if (family->n == family->room) {
		more = realloc(family->members, room * sizeof(*more));
		if (!more)
			return false;
		family->members = more;
		family->room = room;
	}
	family->members[family->n++] = (struct member){ .tgid = tgid,
							.parent = mt_proc_parent(tgid),
							.start = mt_proc_start(tgid) };
	return true;
}

static bool has_in(const struct family *family, uint32_t tgid)
{
	for (size_t i = 0; i < family->n; i++)
		if (family->members[i].tgid == tgid)
			return family->members[i].in;
	return false;
}

static void mark(const struct mt_guard *g, struct family *family)
{
	bool more;

	for (size_t i = 0; i < family->n; i++) {
		struct member *m = &family->members[i];

		m->in = m->tgid == (uint32_t)g->root || mt_place_is_loaded(&g->marks, m->tgid);
	}
	do {
		more = false;
		for (size_t i = 0; i < family->n; i++) {
			struct member *m = &family->members[i];

			if (!m->in && m->parent && has_in(family, m->parent))
				more = m->in = true;
		}
	} while (more);
}

static void list(const struct mt_guard *g, struct family *family)
{
	mt_cleanup(mt_proc_closep) DIR *proc = opendir("/proc");
	uint32_t tgid;

	family->n = 0;
	while ((tgid = mt_proc_next(proc)) && add_member(family, tgid))
		;
	mark(g, family);
}

/* One signal, or two, for a process that is still the one that was listed. */
static bool send_to(const struct member *m, int first, int second)
{
	mt_cleanup(mt_closep) int pidfd = mt_pidfd_open(m->tgid);

	if (pidfd < 0 || mt_proc_start(m->tgid) != m->start || !mt_proc_lives(m->tgid))
		return false;
	if (mt_pidfd_send(pidfd, first, 0) < 0)
		return false;
	if (second)
		(void)mt_pidfd_send(pidfd, second, 0);
	return true;
}

/* Returns how many got it. */
static size_t send_to_tree(const struct mt_guard *g, int first, int second)
{
	struct family family = { 0 };
	size_t n = 0;

	list(g, &family);
	for (size_t i = 0; i < family.n; i++)
		n += family.members[i].in && send_to(&family.members[i], first, second);
	free(family.members);
	return n;
}

bool mt_guard_tick(struct mt_guard *g)
{
	if (!g->control || g->timeout_ns == UINT64_MAX)
		return false;
	if (!g->term_ns) {
		if (!too_long(g))
			return false;
		g->term_ns = mt_clock_ns();
		/* One that is stopped, by whomever, has to be able to obey. */
		send_to_tree(g, SIGTERM, SIGCONT);
	} else if (mt_clock_ns() - g->term_ns > MT_GUARD_GRACE_NS) {
		send_to_tree(g, SIGKILL, 0);
	}
	return true;
}

void mt_guard_sweep(struct mt_guard *g)
{
	const struct timespec moment = { .tv_nsec = ROUND_NS };

	for (int i = 0; i < ROUNDS_MAX && send_to_tree(g, SIGKILL, 0); i++)
		nanosleep(&moment, NULL);
}

void mt_guard_undo_holds(struct mt_guard *g)
{
	if (g->holds)
		mt_holds_undo(g->holds);
}
