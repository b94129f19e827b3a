/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * holds.c - see holds.h for the contract
 *
 * Invariants
 *   - An entry of the page names a process before a signal is sent to it, and until it was
 *     continued or left: whatever the collector dies in, memtrack-run finds it.
 *   - What /proc says of a tgid is believed of the process of the pidfd only if that is still
 *     there afterwards.
 *   - One process is in one entry of ours and in the entry of the page with the same index.
 */
#include "collector/holds.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"
#include "collector/pidfd.h"
#include "collector/proc_state.h"

/* Linux 81b9d8ac0640 ("pidfd: change pidfd_send_signal() to respect PIDFD_THREAD") and its
 * flags (v6.9); not in the C library's headers yet. */
#ifndef PIDFD_SIGNAL_THREAD
#define PIDFD_SIGNAL_THREAD 1
#endif

#define BIT(signo) (1ULL << ((signo)-1))
/* Signals that stop, but can be caught: a SIGCONT throws them away, too. */
#define TERMINAL_STOPS (BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU))

#define LOOKS_MAX 16

struct hold {
	uint32_t tgid; /* 0: this entry is free */
	int pidfd;
	uint64_t since_ns;
};

struct mt_holds {
	bool (*ours)(void *ctx, uint32_t tgid);
	void *ctx;
	int page_fd;
	struct mt_holds_page *page;
	uint32_t n;	    /* entries from here on are free */
	uint32_t n_stopped; /* entries of the page that are not MT_HELD_NONE */
	struct hold holds[MT_HOLDS_MAX];
};

/* What /proc says of a process's main thread, and of its pending signals. */
struct look {
	char state; /* of the main thread */
	bool stands;
	uint32_t tracer;
	uint64_t own;	 /* pending for the main thread */
	uint64_t shared; /* pending for the process */
};

/* The value of the line, if it is of that name. */
static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	return strncmp(line, name, len) == 0 ? line + len : NULL;
}

static int read_status(uint32_t tgid, struct look *ret)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	char path[32], line[256]; /* a longer one, of groups, comes in parts */
	const char *value;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	file = fopen(path, "re");
	*ret = (struct look){ 0 };
	if (!file)
		return -ESRCH;
	while (fgets(line, sizeof(line), file)) {
		if ((value = value_of(line, "State:\t")))
			ret->state = value[0];
		else if ((value = value_of(line, "TracerPid:\t")))
			ret->tracer = (uint32_t)strtoul(value, NULL, 10);
		else if ((value = value_of(line, "SigPnd:\t")))
			ret->own = strtoull(value, NULL, 16);
		else if ((value = value_of(line, "ShdPnd:\t")))
			ret->shared = strtoull(value, NULL, 16);
	}
	return ret->state ? 0 : -ESRCH;
}

/* Whether a thread of it stands still: the one that takes a stop does at once, the others when
 * they run next. */
static bool has_stopped_thread(uint32_t tgid)
{
	mt_cleanup(mt_proc_closep) DIR *threads = mt_proc_threads(tgid);
	uint32_t tid;

	while ((tid = mt_proc_next(threads)))
		if (mt_proc_state(tid) == 'T')
			return true;
	return false;
}

/*
 * What is pending and what stands still, of one moment: a stop that was pending before, and
 * after, was so when the threads were looked at; one that was taken meanwhile is looked at
 * again.
 */
static int look_at(uint32_t tgid, struct look *ret)
{
	struct look after;
	int tries = 0, r = read_status(tgid, ret);

	while (r == 0) {
		ret->stands = has_stopped_thread(tgid);
		r = read_status(tgid, &after);
		if (r < 0 || (after.own == ret->own && after.shared == ret->shared) ||
		    ++tries == LOOKS_MAX)
			break;
		after.stands = false;
		*ret = after;
	}
	return r;
}

enum decision { LEAVE, CONTINUE };

/*
 * Whose is the stop of the process, if it has one?  Ours, or nobody's: it may be continued.
 *
 *   how      shared SIGSTOP   main thread's SIGSTOP   stands still
 *   PLAIN    pending                                 no              ours, to come: as when
 *                                                                    a thread executes a program
 *   else     pending                                                 somebody's, to come
 *   SENT                      pending (ours)          yes            somebody's, who was first
 *   SENT                      pending (ours)          no             ours, to come
 *   SENT                      none                                   ours; or on its way
 *   SEALING                                                          ours
 *   SEALED                    pending (the seal)                     ours
 *   SEALED                    none                                   broken: not ours any more
 *   PLAIN    none                                                    ours
 */
static enum decision decide(uint32_t how, const struct look *look)
{
	bool own = look->own & BIT(SIGSTOP);

	if (look->shared & BIT(SIGSTOP))
		return how == MT_HELD_PLAIN && !look->stands ? CONTINUE : LEAVE;
	if (how == MT_HELD_SENT)
		return own && look->stands ? LEAVE : CONTINUE;
	if (how == MT_HELD_SEALED)
		return own ? CONTINUE : LEAVE;
	return CONTINUE;
}

/* Continues the process, if it is us who stopped it; returns whether it is left stopped. */
static bool let_go(int pidfd, uint32_t tgid, uint32_t how)
{
	struct look look;
	int signo;

	if (how == MT_HELD_NONE)
		return mt_proc_state(tgid) == 'T';
	/* Where /proc says nothing, rather undone too much than one left stopped for ever. */
	if (look_at(tgid, &look) == 0 && decide(how, &look) == LEAVE)
		return look.stands || look.shared & BIT(SIGSTOP);
	if (mt_pidfd_send(pidfd, SIGCONT, 0) < 0)
		return false;
	/* That threw away what a terminal has sent meanwhile. */
	for (signo = SIGTSTP; signo <= SIGTTOU; signo++)
		if (look.shared & BIT(signo) & TERMINAL_STOPS)
			(void)mt_pidfd_send(pidfd, signo, 0);
	return false;
}

int mt_holds_new(bool (*ours)(void *ctx, uint32_t tgid), void *ctx, struct mt_holds **ret)
{
	mt_cleanup(mt_holds_freep) struct mt_holds *h = calloc(1, sizeof(*h));
	void *at;

	if (!h)
		return -ENOMEM;
	h->ours = ours;
	h->ctx = ctx;
	h->page_fd = memfd_create("memtrack-holds", MFD_CLOEXEC);
	if (h->page_fd < 0)
		return mt_neg_errno();
	if (ftruncate(h->page_fd, sizeof(*h->page)) < 0)
		return mt_neg_errno();
	at = mmap(NULL, sizeof(*h->page), PROT_READ | PROT_WRITE, MAP_SHARED, h->page_fd, 0);
	if (at == MAP_FAILED)
		return mt_neg_errno();
	h->page = at;
	*ret = mt_take_ptr(h);
	return 0;
}

void mt_holds_free(struct mt_holds *h)
{
	if (!h)
		return;
	if (h->page) {
		mt_holds_drop(h, NULL, NULL);
		munmap(h->page, sizeof(*h->page));
	}
	mt_closep(&h->page_fd);
	free(h);
}

int mt_holds_page_fd(const struct mt_holds *h)
{
	return h->page_fd;
}

static struct mt_held *entry_of(const struct mt_holds *h, const struct hold *hold)
{
	return &h->page->held[hold - h->holds];
}

static struct hold *find(struct mt_holds *h, uint32_t tgid)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (h->holds[i].tgid == tgid)
			return &h->holds[i];
	return NULL;
}

static struct hold *add(struct mt_holds *h, uint32_t tgid)
{
	struct hold *hold = find(h, 0);

	if (!hold && h->n == MT_HOLDS_MAX)
		return NULL;
	if (!hold)
		hold = &h->holds[h->n++];
	*hold = (struct hold){ .tgid = tgid, .pidfd = -1 };
	return hold;
}

static void forget(struct mt_holds *h, struct hold *hold)
{
	mt_closep(&hold->pidfd);
	*hold = (struct hold){ .pidfd = -1 };
	while (h->n && !h->holds[h->n - 1].tgid)
		h->n--;
}

static void set_how(struct mt_holds *h, const struct hold *hold, uint32_t how)
{
	struct mt_held *entry = entry_of(h, hold);
	uint32_t before = entry->how;

	if (before == MT_HELD_NONE && how != MT_HELD_NONE && !h->n_stopped++)
		__atomic_fetch_add(&h->page->turn, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->how, how, __ATOMIC_SEQ_CST);
	if (before != MT_HELD_NONE && how == MT_HELD_NONE && !--h->n_stopped)
		__atomic_fetch_add(&h->page->turn, 1, __ATOMIC_SEQ_CST);
}

/* Stops the process, unless that is somebody else's business; negative: it is not there. */
static int stop(struct mt_holds *h, struct hold *hold)
{
	struct mt_held *entry = entry_of(h, hold);
	uint64_t start_ticks;
	struct look look;
	int r;

	hold->pidfd = mt_pidfd_open(hold->tgid);
	if (hold->pidfd < 0)
		return hold->pidfd;
	start_ticks = mt_proc_start(hold->tgid);
	if (!start_ticks || !h->ours(h->ctx, hold->tgid) || look_at(hold->tgid, &look) < 0)
		return -ESRCH;
	r = mt_pidfd_send(hold->pidfd, 0, 0);
	if (r < 0)
		return r;
	/* What a debugger is told of would be our signal. */
	if (look.tracer || look.stands || (look.own | look.shared) & BIT(SIGSTOP))
		return 0;
	entry->tgid = hold->tgid;
	entry->start_ticks = start_ticks;
	hold->since_ns = mt_clock_ns();
	if (look.state != 'Z') { /* a main thread that has ended takes no signal */
		set_how(h, hold, MT_HELD_SENT);
		r = mt_pidfd_send(hold->pidfd, SIGSTOP, PIDFD_SIGNAL_THREAD);
		if (r == 0)
			return 0;
	}
	set_how(h, hold, MT_HELD_PLAIN);
	r = mt_pidfd_send(hold->pidfd, SIGSTOP, 0);
	if (r < 0)
		set_how(h, hold, MT_HELD_NONE);
	return r;
}

int mt_holds_take(struct mt_holds *h, uint32_t tgid)
{
	struct hold *hold;
	int r;

	if (!tgid)
		return -ESRCH;
	if (find(h, tgid))
		return 0;
	hold = add(h, tgid);
	if (!hold)
		return -ENOSPC;
	r = stop(h, hold);
	if (r < 0)
		forget(h, hold);
	return r;
}

/* Returns whether there is nothing more to be done. */
static bool seal(struct mt_holds *h, const struct hold *hold)
{
	uint32_t how = entry_of(h, hold)->how;
	struct look look;

	if (how != MT_HELD_SENT && how != MT_HELD_SEALING)
		return true;
	if (look_at(hold->tgid, &look) < 0)
		return true;
	if (how == MT_HELD_SEALING && look.own & BIT(SIGSTOP) && look.stands) {
		set_how(h, hold, MT_HELD_SEALED);
		return true;
	}
	/* Somebody else's stop, which came first: there is nothing to seal. */
	if (how == MT_HELD_SENT && look.own & BIT(SIGSTOP) && look.stands)
		return true;
	/* A seal that was taken for a stop, because a SIGCONT came between, is sent again. */
	if (look.stands && !(look.own & BIT(SIGSTOP))) {
		set_how(h, hold, MT_HELD_SEALING);
		return mt_pidfd_send(hold->pidfd, SIGSTOP, PIDFD_SIGNAL_THREAD) < 0;
	}
	return false;
}

void mt_holds_seal(struct mt_holds *h)
{
	uint64_t begin_ns = mt_clock_ns();
	bool done;

	do {
		done = true;
		for (uint32_t i = 0; i < h->n; i++)
			done &= !h->holds[i].tgid || seal(h, &h->holds[i]);
		if (!done)
			sched_yield();
	} while (!done && mt_clock_ns() - begin_ns < MT_HOLDS_SEAL_NS);
}

bool mt_holds_drop(struct mt_holds *h, mt_let_go_fn fn, void *ctx)
{
	bool left = false;

	for (uint32_t i = h->n; i-- > 0;) {
		struct hold *hold = &h->holds[i];
		uint32_t how = entry_of(h, hold)->how, tgid = hold->tgid;
		uint64_t since_ns = hold->since_ns;

		if (!tgid)
			continue;
		left |= let_go(hold->pidfd, tgid, how);
		set_how(h, hold, MT_HELD_NONE);
		forget(h, hold);
		if (fn)
			fn(ctx, tgid, since_ns ? mt_clock_ns() - since_ns : 0);
	}
	return left;
}

void mt_holds_undo(struct mt_holds_page *page)
{
	for (uint32_t i = 0; i < MT_HOLDS_MAX; i++) {
		struct mt_held *entry = &page->held[i];
		uint32_t how = __atomic_load_n(&entry->how, __ATOMIC_SEQ_CST);
		mt_cleanup(mt_closep) int pidfd = -1;

		if (how == MT_HELD_NONE)
			continue;
		pidfd = mt_pidfd_open(entry->tgid);
		if (pidfd >= 0 && mt_proc_start(entry->tgid) == entry->start_ticks)
			(void)let_go(pidfd, entry->tgid, how);
		entry->how = MT_HELD_NONE;
	}
	__atomic_store_n(&page->turn, 0, __ATOMIC_SEQ_CST);
}
