/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rest.c - see rest.h for the contract
 *
 * Invariants
 *   - The gate says that we rest before the latch is looked at, a full barrier between; who parks
 *     has latched, or seen the latch, before it looks at the gate.  So either we see the latch, or
 *     they see that we rest (tests/model/park.py).
 *   - The ringer waits on the word whatever that says: a wake-up is the message, not a value.
 *     Nobody wakes it but who rings, and who ends it.
 *   - That it is over the ringer knows from memory of our own, and it is woken until it has ended:
 *     the word is one that targets can write, too, and may say again what it said before.
 */
#include "collector/rest.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"

/* Once is enough, but for somebody who writes what is not theirs. */
#define WAKE_AGAIN_NS (10 * 1000 * 1000ULL)

struct mt_rest {
	struct mt_segments *segments;
	pthread_t ringer;
	int bell;
	uint64_t since_ns; /* what came since then: */
	uint64_t cells;
	bool quiet; /* as the last MT_REST_QUIET_NS were */
	bool over;
};

static uint32_t load(const struct mt_gate *gate)
{
	return __atomic_load_n(&gate->rests, __ATOMIC_SEQ_CST);
}

static void store(struct mt_rest *rest, uint32_t value)
{
	__atomic_store_n(&rest->segments->gate->rests, value, __ATOMIC_SEQ_CST);
}

static void *ringer(void *arg)
{
	const struct mt_rest *rest = arg;
	struct mt_gate *gate = rest->segments->gate;
	const uint64_t once = 1;

	for (;;) {
		uint32_t value = load(gate);

		if (__atomic_load_n(&rest->over, __ATOMIC_SEQ_CST))
			return NULL;
		if (syscall(SYS_futex, &gate->rests, FUTEX_WAIT, value, NULL, NULL, 0) == 0)
			(void)!write(rest->bell, &once, sizeof(once));
	}
}

int mt_rest_new(struct mt_segments *segments, struct mt_rest **ret)
{
	mt_cleanup(mt_freep) struct mt_rest *rest = calloc(1, sizeof(*rest));
	mt_cleanup(mt_closep) int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (!rest)
		return -ENOMEM;
	if (bell < 0)
		return mt_neg_errno();
	rest->segments = segments;
	rest->bell = bell;
	rest->since_ns = mt_clock_ns();
	r = -pthread_create(&rest->ringer, NULL, ringer, rest);
	if (r < 0)
		return r;
	mt_take_fd(&bell);
	*ret = mt_take_ptr(rest);
	return 0;
}

void mt_rest_free(struct mt_rest *rest)
{
	struct timespec soon;

	if (!rest)
		return;
	__atomic_store_n(&rest->over, true, __ATOMIC_SEQ_CST);
	do {
		store(rest, MT_REST_OVER);
		syscall(SYS_futex, &rest->segments->gate->rests, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
		soon = mt_clock_timespec(mt_clock_ns() + WAKE_AGAIN_NS);
	} while (pthread_clockjoin_np(rest->ringer, NULL, CLOCK_MONOTONIC, &soon));
	close(rest->bell);
	free(rest);
}

static void begin_anew(struct mt_rest *rest, bool quiet, uint64_t now_ns)
{
	rest->quiet = quiet;
	rest->cells = 0;
	rest->since_ns = now_ns;
}

void mt_rest_note(struct mt_rest *rest, uint64_t cells, uint64_t now_ns)
{
	uint64_t ring_cells = rest->segments->ring_bytes / sizeof(struct mt_cell);

	rest->cells += cells;
	if (rest->cells > ring_cells / MT_REST_RING_SHARE)
		begin_anew(rest, false, now_ns);
	else if (now_ns - rest->since_ns >= MT_REST_QUIET_NS)
		begin_anew(rest, true, now_ns);
}

bool mt_rest_begin(struct mt_rest *rest)
{
	const struct mt_control *control = rest->segments->control;
	uint64_t rung;

	if (!rest->quiet || rest->segments->pause != MT_PAUSE_FUTEX ||
	    __atomic_load_n(&control->sandboxed, __ATOMIC_RELAXED))
		return false;
	/* Of before: a pass has seen what that was for, or the latch still says it. */
	(void)!read(rest->bell, &rung, sizeof(rung));
	store(rest, MT_REST_ON);
	if (!__atomic_load_n(&control->latch, __ATOMIC_SEQ_CST))
		return true;
	mt_rest_end(rest, true);
	return false;
}

void mt_rest_end(struct mt_rest *rest, bool woken)
{
	store(rest, MT_REST_NONE);
	if (woken)
		begin_anew(rest, false, mt_clock_ns());
}

int mt_rest_fd(const struct mt_rest *rest)
{
	return rest->bell;
}
