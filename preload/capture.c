/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture.c - see capture.h
 *
 * Invariants
 *   - seq is read before a word of the window, and looked at again before its outcome is
 *     used: a handler may have captured in between, and what was compared is stale then.
 *   - Inline, one capture at a time makes a record, and marks that, in TLS and in its own
 *     frame, until it is done or left by a longjmp (abandoned()).  Who interrupts a marked
 *     capture sends a detached record, straight from the stack: scratch and reference are
 *     the other's.
 *   - A window that was copied (thread.h) is used only if no handler made a copy of its own
 *     since: what was made of its words is dropped otherwise, and begun anew.
 *   - A record's last piece is appended only while seq has not moved; after it the reference
 *     moves.  Where a longjmp came between, the reference is void, its number used up.
 *   - Modules are on a ring before the stack that needs them.
 */
#include "preload/capture.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <time.h>

#include "preload/modules.h"
#include "preload/probe.h"
#include "preload/real.h"
#include "preload/syscall.h"
#include "wire/stack_encode.h"

/* A page of the window that was not present is touched, and the probe tried again. */
#define FAULTS_MAX 3
/* How often a copy that was spoiled is made again. */
#define TORN_MAX 3
/* Another task that shares the slot (CLONE_VM without a thread of its own). */
#define BUSY_MAX 100
/* How long the consumer of a full BPF ring is waited for. */
#define FULL_WAIT_NS (1000 * 1000)

/* Enough to be hit by the frames of calls after a longjmp. */
#define MARK_WORDS 4

/* Compares whole groups; chosen once. */
static mt_groups_differ_fn groups_differ = mt_groups_differ;

struct window {
	uint64_t start;
	struct mt_extent extent;
	uint64_t seq; /* as it was before the window was read */
	uint32_t resync;
	uint32_t epoch;
	__u64 mask[2];
};

static __u64 *dictionary_of(const struct mt_self *self)
{
	return (__u64 *)((char *)self->reference + MT_DICTIONARY_OFFSET);
}

static __u64 *words_of(const struct mt_self *self)
{
	return (__u64 *)((char *)self->reference + MT_WORDS_OFFSET);
}

static uint64_t seq_of(const struct mt_self *self)
{
	return *(const volatile uint64_t *)&self->reference->seq;
}

static struct mt_stack_name named(uint64_t digest, uint64_t seq)
{
	return (struct mt_stack_name){ digest % MT_DICTIONARY, seq / 2 };
}

static struct mt_stack_name lost(void)
{
	__atomic_fetch_add(&mt_session.control->lost_stacks, 1, __ATOMIC_RELAXED);
	return (struct mt_stack_name){ MT_STACK_NONE | MT_NONE_LOST, 0 };
}

enum knowledge { WINDOW_NEW, WINDOW_KNOWN, WINDOW_TORN };

/* The first pass; where the window is a known one, *digest is its name. */
static enum knowledge look_at(const struct mt_self *self, struct window *w, uint64_t *digest)
{
	const struct mt_reference *reference = self->reference;

	w->epoch = __atomic_load_n(&mt_session.epoch, __ATOMIC_RELAXED);
	w->resync = *(const volatile uint32_t *)&reference->resync_asked;
	w->seq = seq_of(self);
	__asm__ volatile("" ::: "memory");
	*digest = mt_digest_window(reference, words_of(self), w->start, w->extent.end,
				   w->extent.shift, w->epoch, mt_session.budget_bytes,
				   groups_differ, w->mask);
	__asm__ volatile("" ::: "memory");
	if (mt_thread_copy_torn(self, &w->extent))
		return WINDOW_TORN;
	return !(w->seq & 1) && mt_dictionary_has(dictionary_of(self), *digest) &&
			       seq_of(self) == w->seq &&
			       *(const volatile uint32_t *)&reference->resync_asked == w->resync
		       ? WINDOW_KNOWN
		       : WINDOW_NEW;
}

/*
 * A record straight from the live stack: every word of every group that the window has, so
 * that its length is known before the first word is read.  False: a handler came between.
 *
 * The name has the seq of the record that was interrupted: that may be on the ring, before
 * this one, and the reference not moved yet.
 */
static __attribute__((noinline)) bool send_detached(struct mt_self *self, const struct window *w,
						    struct mt_stack_name *ret)
{
	uint32_t groups = mt_session.budget_bytes / MT_GROUP_BYTES, r, i;
	uint32_t n = __atomic_fetch_add(&self->detached, 1, __ATOMIC_RELAXED);
	struct mt_stack_record record = {
		.len = sizeof(record) + (w->extent.end - w->start) + 8,
		.kind = MT_STACK_KIND_DETACHED,
		.slot = self->ring.slot,
		.generation = self->reference->generation,
		.seq = n,
		.time_ns = mt_now_ns(),
		.start = w->start,
		.end = w->extent.end,
		.epoch = w->epoch,
	};
	struct mt_piece_writer writer;
	__u64 copy[MT_GROUP_WORDS];
	uint64_t sum = 0;

	for (r = 0; r < groups; r++)
		if (mt_group_range(w->start, record.end, r, groups)) {
			record.mask[r / 64] |= 1ULL << (r & 63);
			record.len += 8;
		}
	mt_piece_begin(&writer, &self->ring, MT_RECORD_STACK,
		       __atomic_fetch_add(&self->piece_id, 1, __ATOMIC_RELAXED), record.len);
	for (i = 0; i < sizeof(record) / 8; i++)
		mt_piece_word(&writer, ((const uint64_t *)&record)[i]);
	for (r = 0; r < groups; r++) {
		uint32_t range = mt_group_range(w->start, record.end, r, groups);
		const __u64 *live = (const __u64 *)(mt_group_address(w->start, r, groups) +
						    w->extent.shift);

		if (!range)
			continue;
		mt_piece_word(&writer, mt_range_bits(range));
		for (i = 0; i < MT_GROUP_WORDS; i++) {
			bool inside = i >= MT_RANGE_LO(range) && i < MT_RANGE_HI(range);

			copy[i] = inside ? mt_live_word(live + i) : 0;
			if (inside)
				mt_piece_word(&writer, copy[i]);
		}
		sum += mt_digest_part(mt_group_hash(copy), r);
	}
	mt_piece_word(&writer, mt_digest_finish(w->start, record.end, w->epoch, sum));
	/* Without its last piece it is no record. */
	if (mt_thread_copy_torn(self, &w->extent))
		return false;
	*ret = mt_piece_end(&writer)
		       ? (struct mt_stack_name){ MT_STACK_DETACHED | (n & (MT_STACK_DETACHED - 1)),
						 seq_of(self) / 2 + 1 }
		       : lost();
	return true;
}

/* Was the mark that the marked capture left in its frame overwritten?  The frame may lie on a
 * stack that is gone. */
static bool mark_gone(const struct mt_self *self)
{
	uint64_t mark[MARK_WORDS];
	long n = mt_thread_read((uint64_t)self->capture_mark, mark, sizeof(mark));
	int i;

	if (n == -EFAULT)
		return true;
	if (n != sizeof(mark))
		return false; /* Nobody knows. */
	for (i = 0; i < MARK_WORDS; i++)
		if (mark[i] != self->capture_number)
			return true;
	return false;
}

/*
 * Was the capture that is marked left for good?  Seen from a capture of the window at start:
 * a marked one whose window starts at or below that on the same stack has lost its frames;
 * so has one whose mark in its own frame was overwritten.
 */
static bool abandoned(const struct mt_self *self, uint64_t start)
{
	uint64_t mark = self->capture_start;
	stack_t other;
	int i;

	if (mt_thread_on_stack(self, mark)) {
		if (mt_thread_on_stack(self, start) && start >= mark)
			return true;
		for (i = 0; i < MARK_WORDS; i++)
			if (self->capture_mark[i] != self->capture_number)
				return true;
		return false;
	}
	/* A handler's stack that is not in use was left. */
	if (mt_syscall4(SYS_sigaltstack, 0, (long)&other, 0, 0) ||
	    mark - (uint64_t)other.ss_sp >= other.ss_size)
		return mark_gone(self);
	return !(other.ss_flags & SS_ONSTACK) ||
	       (start - (uint64_t)other.ss_sp < other.ss_size && start >= mark);
}

/* What the abandoned capture made of the reference, nobody knows. */
static void make_void(struct mt_self *self)
{
	struct mt_reference *reference = self->reference;

	reference->digest = 0;
	*(volatile uint64_t *)&reference->seq = (seq_of(self) + 3) & ~1ULL;
	self->capture_start = 0;
}

/* The record in the scratch goes on the ring, if seq and copy still are what it was made of. */
static bool send_record(struct mt_self *self, uint32_t bytes, uint64_t seq,
			const struct mt_extent *extent)
{
	const uint64_t *record = (const uint64_t *)&self->scratch->record;
	struct mt_piece_writer writer;
	uint32_t i;

	mt_piece_begin(&writer, &self->ring, MT_RECORD_STACK,
		       __atomic_fetch_add(&self->piece_id, 1, __ATOMIC_RELAXED), bytes);
	for (i = 0; i < bytes / 8; i++)
		mt_piece_word(&writer, record[i]);
	return seq_of(self) == seq && !mt_thread_copy_torn(self, extent) && mt_piece_end(&writer);
}

static __attribute__((noinline)) bool send_inline(struct mt_self *self, const struct window *w,
						  struct mt_stack_name *ret)
{
	volatile uint64_t mark[MARK_WORDS];
	uint32_t bytes;
	uint64_t seq;
	bool sent;
	int i;

	if (self->capture_start && abandoned(self, w->start))
		make_void(self);
	if (self->capture_start)
		return send_detached(self, w, ret);
	self->capture_number++;
	for (i = 0; i < MARK_WORDS; i++)
		mark[i] = self->capture_number;
	self->capture_mark = mark;
	*(volatile uint64_t *)&self->capture_start = w->start;
	__asm__ volatile("" ::: "memory");
	seq = seq_of(self);
	bytes = mt_encode_window(self->reference, words_of(self), self->scratch, self->ring.slot,
				 w->seq, w->start, w->extent.end, w->extent.shift, w->epoch,
				 w->mask, mt_session.budget_bytes, mt_now_ns());
	sent = send_record(self, bytes, seq, &w->extent);
	if (sent) {
		mt_commit_window(self->reference, dictionary_of(self), words_of(self),
				 self->scratch, mt_session.budget_bytes);
		*ret = named(self->reference->digest, seq_of(self));
	}
	__asm__ volatile("" ::: "memory");
	*(volatile uint64_t *)&self->capture_start = 0;
	return sent;
}

static void wait_for_consumer(void)
{
	struct timespec limit = { .tv_nsec = FULL_WAIT_NS };
	const uint32_t *futex = &mt_session.gate->futex;

	mt_syscall4(SYS_futex, (long)futex, FUTEX_WAIT, __atomic_load_n(futex, __ATOMIC_ACQUIRE),
		    (long)&limit);
}

/* What BPF says of the probe; MT_PROBE_SENT: *ret is the window's name. */
static uint32_t probe(const struct mt_self *self, const struct window *w, struct mt_stack_name *ret)
{
	const volatile struct mt_reference *reference = self->reference;
	uint32_t probes = reference->probes, status;
	uint64_t seq, digest;
	bool ours;

	mt_probe_send(self->ring.slot | (uint64_t)w->epoch << 32, w->seq, w->mask[0], w->start,
		      w->extent.end, mt_session.address.cookie, w->mask[1]);
	if (reference->probes == probes)
		return MT_PROBE_NONE;
	status = reference->status;
	seq = reference->seq;
	digest = reference->digest;
	/* A handler's probe after ours has another start: then this one is asked again. */
	ours = reference->start == w->start && reference->end == w->extent.end &&
	       reference->epoch == w->epoch;
	if (status == MT_PROBE_SENT && (!ours || seq & 1 || reference->seq != seq))
		return MT_PROBE_BUSY;
	*ret = named(digest, seq);
	return status;
}

struct mt_stack_name mt_capture(struct mt_self **self_at, const uint64_t *saved)
{
	struct mt_self *self = *self_at;
	struct window w = { .start = (uint64_t)saved };
	struct mt_stack_name name;
	unsigned faults = 0, busy = 0, torn = 0;
	enum knowledge knowledge;
	uint64_t digest;

	if (w.start % 8)
		return lost();
	while (self) {
		w.extent = torn < TORN_MAX ? mt_thread_window(self, w.start)
					   : mt_thread_window_on_page(w.start);
		knowledge = look_at(self, &w, &digest);
		if (knowledge == WINDOW_KNOWN)
			return named(digest, w.seq);
		if (knowledge == WINDOW_TORN) {
			torn++;
			continue;
		}
		mt_modules_check(self);
		if (self->scratch) {
			if (send_inline(self, &w, &name))
				return name;
			if (!mt_session.on)
				return lost();
			torn += w.extent.shift != 0;
			continue;
		}
		switch (probe(self, &w, &name)) {
		case MT_PROBE_SENT:
			return name;
		case MT_PROBE_FULL:
			wait_for_consumer();
			break;
		case MT_PROBE_FAULT:
			if (w.extent.shift)
				torn++; /* Behind this page it has gone since it was copied. */
			else if (++faults > FAULTS_MAX)
				return lost();
			break;
		case MT_PROBE_BUSY:
			if (++busy > BUSY_MAX)
				return lost();
			break;
		default:
			/* Not there any more, or not for this thread. */
			if (mt_session_orphaned()) {
				mt_session_end();
				*self_at = NULL;
				return lost();
			}
			self = mt_thread_go_inline(saved);
			*self_at = self;
			break;
		}
		if (mt_session_orphaned()) {
			mt_session_end();
			*self_at = NULL;
			return lost();
		}
	}
	return lost();
}
