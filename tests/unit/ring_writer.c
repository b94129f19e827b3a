/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ring_writer.c - see ring_writer.h
 */
#include "tests/unit/ring_writer.h"

#include <sys/rseq.h>
#include <time.h>

#include "preload/real.h"
#include "preload/ring.h"
#include "preload/session.h"

struct mt_session mt_session;
struct mt_libc mt_libc;
int64_t mt_clock_offset_ns;
bool mt_sandbox, mt_sandbox_clock;

static struct mt_ring ring;

uint64_t mt_sandbox_now_ns(void)
{
	return 0; /* nobody is in one */
}

void mt_session_end(void)
{
	mt_session.on = 0;
}

bool mt_session_orphaned(void)
{
	return false;
}

void ring_writer_take(struct mt_thread *head, void *cells, uint32_t bytes, uint32_t slot,
		      struct mt_control *control, struct mt_gate *gate, bool rseq)
{
	static uint64_t fork_word = MT_FORK_BUSY + 1;

	mt_session.fork_word = &fork_word;
	mt_session.control = control;
	mt_session.gate = gate;
	mt_libc.clock_gettime = clock_gettime;
	ring = (struct mt_ring){
		.head = head,
		.cells = cells,
		.bytes = bytes,
		.rseq = rseq && __rseq_size,
		.slot = slot,
	};
}

static const struct mt_cell cell = { .head = MT_CELL_HEAD(MT_CELL_FREE, 10, 0, 0) };

bool ring_writer_append(void)
{
	return mt_ring_try(&ring, &cell);
}

void ring_writer_wait_and_append(void)
{
	(void)mt_ring_append(&ring, &cell);
}

void ring_writer_heed(void)
{
	mt_ring_heed(&ring);
}

void ring_writer_sandbox(bool sandbox)
{
	mt_sandbox = sandbox;
}
