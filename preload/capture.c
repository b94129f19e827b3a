/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture.c - see capture.h
 *
 * Invariants
 *   - seq is read before a word of the window, and looked at again before its outcome is
 *     used: a handler may have captured in between, and what was compared is stale then.
 *   - Inline, one capture at a time makes a record, and marks that, in TLS and in its own
 *     frame, until it is done or left by a longjmp (abandoned()).  Who interrupts a marked
 *     capture sends its window as it is, straight from the stack: scratch and reference are
 *     the other's.
 *   - A window that was copied (thread.h) is used only if no handler made a copy of its own
 *     since: what was made of its words is dropped otherwise, and begun anew.
 *   - A record, or its last piece, is appended only while seq has not moved; after it the
 *     reference moves.  Where a longjmp came between, the reference is void, its number used up.
 *   - Modules are on a ring before the stack that needs them.
 */
#include "preload/capture.h"

#include <errno.h>
#include <signal.h>

#include "preload/compare.h"
#include "preload/learned.h"
#include "preload/modules.h"
#include "preload/probe.h"
#include "preload/recent.h"
#include "preload/sandbox.h"
#include "preload/syscall.h"
#include "wire/stack_encode.h"

/* A page of the window that was not present is touched, and the probe tried again; after so many
 * times, as after BUSY_MAX, the thread sends the window itself. */
#define FAULTS_MAX 3
/* How often a copy that was spoiled is made again. */
#define TORN_MAX 3
/* Another task that shares the slot (CLONE_VM without a thread of its own). */
#define BUSY_MAX 100
/* How long the consumer of a full BPF ring is waited for. */
#define FULL_WAIT_NS (1000 * 1000)

/* Enough to be hit by the frames of calls after a longjmp. */
#define MARK_WORDS 4

struct window {
	uint64_t start;
	struct mt_extent extent;
	const struct mt_compare *compare;
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

static struct mt_stack_name named(uint32_t entry, uint64_t seq)
{
	return (struct mt_stack_name){ entry, seq / 2 };
}

static struct mt_stack_name alone(uint32_t number, uint32_t seq)
{
	return (struct mt_stack_name){ MT_STACK_ALONE | (number & (MT_STACK_ALONE - 1)), seq };
}

static struct mt_stack_name lost(void)
{
	__atomic_fetch_add(&mt_session.control->lost_stacks, 1, __ATOMIC_RELAXED);
	return (struct mt_stack_name){ MT_STACK_NONE | MT_NONE_LOST, 0 };
}

/* What the window is looked at against, as it is before a word of it is read. */
static void look_up_reference(const struct mt_self *self, struct window *w)
{
	w->epoch = __atomic_load_n(&mt_session.epoch, __ATOMIC_RELAXED);
	w->resync = *(const volatile uint32_t *)&self->reference->resync_asked;
	w->seq = seq_of(self);
	__asm__ volatile("" ::: "memory");
}

/* The dictionary's entry of the window as it was read, or -1. */
static int find_known(const struct mt_self *self, const struct window *w, uint64_t digest)
{
	int entry;

	__asm__ volatile("" ::: "memory");
	entry = mt_dictionary_find(dictionary_of(self), digest);
	if (w->seq & 1 || seq_of(self) != w->seq ||
	    *(const volatile uint32_t *)&self->reference->resync_asked != w->resync)
		return -1;
	return entry;
}

enum knowledge { WINDOW_NEW, WINDOW_KNOWN, WINDOW_TORN };

/* Compares and hashes; where the window is a known one, *ret is its name. */
static enum knowledge look_at(const struct mt_self *self, struct window *w,
			      struct mt_stack_name *ret)
{
	uint64_t digest;
	int entry;

	look_up_reference(self, w);
	digest = mt_digest_window(self->reference, words_of(self), w->start, w->extent.end,
				  w->extent.shift, w->epoch, mt_session.budget_bytes, w->compare,
				  w->mask);
	entry = find_known(self, w, digest);
	if (mt_thread_copy_torn(self, &w->extent))
		return WINDOW_TORN;
	if (entry < 0)
		return WINDOW_NEW;
	*ret = named(entry, w->seq);
	return WINDOW_KNOWN;
}

/* Is the chain of the window's words one that the collector has taught?  Else it may have a key. */
static bool find_learned(const struct mt_self *self, uint64_t start, const struct mt_extent *extent,
			 struct mt_chain *ret)
{
	struct mt_learned_window window = {
		.start = start,
		.end = extent->end,
		.shift = extent->shift,
		.epoch = __atomic_load_n(&mt_session.epoch, __ATOMIC_RELAXED),
	};
	const struct mt_own *own = self->own;
	uint64_t in_use;
	bool found;

	ret->key = 0;
	if (!own->learned)
		return false;
	/* Of frames that are gone? */
	in_use = mt_trail_in_use(own->trail);
	if (in_use && in_use <= start && mt_thread_on_stack(self, in_use) &&
	    mt_thread_on_stack(self, start))
		mt_trail_forget(own->trail);
	found = mt_learned_chain(own->learned, self->ring.slot % MT_CHUNK_SLOTS, own->trail,
				 &window, ret);
	if (!mt_thread_copy_torn(self, extent))
		return found;
	ret->key = 0;
	return false;
}

/* Was a window with the chain sent before, and is it known still? */
static bool find_recent(const struct mt_self *self, const struct mt_chain *chain,
			struct mt_stack_name *ret)
{
	struct window w;
	uint64_t digest;
	int entry;

	if (!chain->key || !self->reference)
		return false;
	digest = mt_recent_find(self->own->recent, chain);
	if (!digest)
		return false;
	look_up_reference(self, &w);
	entry = find_known(self, &w, digest);
	if (entry < 0)
		return false;
	*ret = named(entry, w.seq);
	return true;
}

/* The window has a name.  Its chain is looked for again: was it still the same when the record was
 * made? */
static void note_recent(const struct mt_self *self, const struct window *w,
			const struct mt_chain *chain, struct mt_stack_name name)
{
	struct mt_chain again;
	uint64_t digest, seq;

	if (!chain->key || name.half >= MT_DICTIONARY)
		return;
	digest = *(const volatile __u64 *)&dictionary_of(self)[name.half];
	seq = seq_of(self);
	if (!digest || seq & 1 || (uint32_t)(seq / 2) != name.word)
		return;
	find_learned(self, w->start, &w->extent, &again);
	if (again.key == chain->key && again.epoch == chain->epoch)
		mt_recent_put(self->own->recent, chain, digest);
}

/* A record's head, for a window that is sent as it is. */
static uint32_t raw_head(const struct mt_self *self, const struct window *w, uint32_t number,
			 struct mt_stack_record *ret)
{
	uint32_t head_bytes = mt_stack_head_bytes(mt_session.budget_bytes);
	uint32_t window_bytes = w->extent.end - w->start;

	*ret = (struct mt_stack_record){
		.len_words = (head_bytes + window_bytes) / 8 + 1,
		.kind = MT_STACK_RAW,
		.slot = self->ring.slot,
		.generation = self->reference ? self->reference->generation : 0,
		.seq = number,
		.window_words = window_bytes / 8,
		.start = w->start,
		.epoch = w->epoch,
	};
	ret->check = mt_stack_check(ret, 0);
	return head_bytes;
}

/*
 * The window itself, straight from the stack: scratch and reference are of a capture that
 * this one interrupts, or the kernel's, or there are none.  False: a handler came between.
 *
 * The name has the seq of the record that was interrupted: that may be on the ring, before
 * this one, and the reference not moved yet.
 */
static __attribute__((noinline)) bool send_raw(struct mt_self *self, const struct window *w,
					       struct mt_stack_name *ret)
{
	uint32_t number = __atomic_fetch_add(&self->ring.head->alone, 1, __ATOMIC_RELAXED),
		 head_bytes, k, i;
	const __u64 *live = (const __u64 *)(w->start + w->extent.shift);
	struct mt_stack_record head;
	struct mt_piece_writer writer;
	__u64 copy[MT_GROUP_WORDS];
	uint64_t sum = 0;

	head_bytes = raw_head(self, w, number, &head);
	mt_piece_begin(&writer, &self->ring, MT_RECORD_STACK,
		       __atomic_fetch_add(&self->piece_id, 1, __ATOMIC_RELAXED),
		       head.len_words * 8);
	for (i = 0; i < head_bytes / 8; i++)
		mt_piece_word(&writer, ((const uint64_t *)&head)[i]);
	for (k = 0; k * MT_GROUP_WORDS < head.window_words; k++) {
		uint32_t left = head.window_words - k * MT_GROUP_WORDS;

		for (i = 0; i < MT_GROUP_WORDS; i++) {
			copy[i] = i < left ? mt_live_word(live++) : 0;
			if (i < left)
				mt_piece_word(&writer, copy[i]);
		}
		sum += mt_digest_part(mt_group_hash(copy), k);
	}
	mt_piece_word(&writer, mt_digest_finish(w->start, w->extent.end, w->epoch, sum));
	/* Without its last piece it is no record. */
	if (mt_thread_copy_torn(self, &w->extent))
		return false;
	*ret = mt_piece_end(&writer) ? alone(number, self->reference ? seq_of(self) / 2 + 1 : 0)
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
	/* Nothing may be asked, and so nobody knows. */
	if (mt_sandbox)
		return false;
	/* A handler's stack that is not in use was left. */
	if (mt_syscall4(SYS_sigaltstack, 0, (long)&other, 0, 0) ||
	    mark - (uint64_t)other.ss_sp >= other.ss_size)
		return mark_gone(self);
	return !(other.ss_flags & SS_ONSTACK) ||
	       (start - (uint64_t)other.ss_sp < other.ss_size && start >= mark);
}

/* What the abandoned capture made of the reference, nobody knows; nor whether its record is on
 * the ring and its digest not in the dictionary yet.  So all begins anew, as with an owner. */
static void make_void(struct mt_self *self)
{
	uint64_t number;

	/* Once more, if a handler has done so in between, and captured: what is made here then is
	 * its generation. */
	do {
		number = *(volatile uint64_t *)&self->capture_number;
		__asm__ volatile("" ::: "memory");
		mt_claim_reference(self->reference, dictionary_of(self));
		__asm__ volatile("" ::: "memory");
	} while (*(volatile uint64_t *)&self->capture_number != number);
	self->capture_start = 0;
}

/* The record in the scratch goes on the ring, if seq and copy still are what it was made of. */
static bool send_record(struct mt_self *self, uint32_t bytes, uint64_t seq,
			const struct mt_extent *extent)
{
	struct mt_scratch *scratch = self->scratch;
	const uint64_t *record = (const uint64_t *)&scratch->record;
	struct mt_piece_writer writer;
	uint32_t i;

	if (seq_of(self) != seq || mt_thread_copy_torn(self, extent))
		return false;
	if (mt_ring_takes_blob(&self->ring, bytes))
		return mt_ring_append_blob(&self->ring, MT_RECORD_STACK,
					   (uint64_t *)&scratch->cell_head, bytes);
	mt_piece_begin(&writer, &self->ring, MT_RECORD_STACK,
		       __atomic_fetch_add(&self->piece_id, 1, __ATOMIC_RELAXED), bytes);
	for (i = 0; i < bytes / 8; i++)
		mt_piece_word(&writer, record[i]);
	return seq_of(self) == seq && !mt_thread_copy_torn(self, extent) && mt_piece_end(&writer);
}

enum outcome { OUTCOME_NAMED, OUTCOME_SPOILED };

/* The window's record is made, and sent if the window is not a known one. */
static enum outcome encode_and_send(struct mt_self *self, struct window *w,
				    struct mt_stack_name *ret)
{
	struct mt_scratch *scratch = self->scratch;
	uint64_t digest;
	uint32_t bytes;
	int entry;

	look_up_reference(self, w);
	mt_compare_window(self->reference, words_of(self), w->start, w->extent.end, w->extent.shift,
			  mt_session.budget_bytes, w->compare, w->mask);
	digest = mt_read_window(self->reference, scratch, self->ring.slot, w->seq, w->start,
				w->extent.end, w->extent.shift, w->epoch, w->mask,
				mt_session.budget_bytes, w->compare, 0);
	if (scratch->keep) {
		entry = find_known(self, w, digest);
		if (entry >= 0 && !mt_thread_copy_torn(self, &w->extent)) {
			*ret = named(entry, w->seq);
			return OUTCOME_NAMED;
		}
	}
	bytes = mt_encode_window(self->reference, dictionary_of(self), words_of(self), scratch,
				 mt_session.budget_bytes, w->compare);
	mt_modules_check(self);
	if (!send_record(self, bytes, w->seq, &w->extent))
		return OUTCOME_SPOILED;
	mt_commit_window(self->reference, dictionary_of(self), words_of(self), scratch,
			 mt_session.budget_bytes, w->compare);
	*ret = named(self->reference->entry, seq_of(self));
	/* What is new costs a record each time, until it was taught. */
	mt_ring_wake_collector();
	return OUTCOME_NAMED;
}

/* A handler's capture in the middle of another: may not touch what that one works on. */
static __attribute__((noinline)) enum outcome capture_within(struct mt_self *self, struct window *w,
							     struct mt_stack_name *ret)
{
	switch (look_at(self, w, ret)) {
	case WINDOW_KNOWN:
		return OUTCOME_NAMED;
	case WINDOW_TORN:
		return OUTCOME_SPOILED;
	default:
		mt_modules_check(self);
		return send_raw(self, w, ret) ? OUTCOME_NAMED : OUTCOME_SPOILED;
	}
}

static __attribute__((noinline)) enum outcome capture_inline(struct mt_self *self, struct window *w,
							     struct mt_stack_name *ret)
{
	volatile uint64_t mark[MARK_WORDS], *number_at = &self->capture_number, number;
	enum outcome outcome;
	int i;

	if (self->capture_start && abandoned(self, w->start))
		make_void(self);
	if (self->capture_start)
		return capture_within(self, w, ret);
	/* A handler's capture before it is marked leaves its own mark: the next one would take ours
	 * for abandoned. */
	do {
		number = *number_at + 1;
		*number_at = number;
		for (i = 0; i < MARK_WORDS; i++)
			mark[i] = number;
		*(const volatile uint64_t *volatile *)&self->capture_mark = mark;
		*(volatile uint64_t *)&self->capture_start = w->start;
		__asm__ volatile("" ::: "memory");
	} while (*number_at != number);
	outcome = encode_and_send(self, w, ret);
	__asm__ volatile("" ::: "memory");
	*(volatile uint64_t *)&self->capture_start = 0;
	return outcome;
}

/*
 * The probe, with whatever seq the record is to be of; returns what BPF says of it, or
 * MT_PROBE_NONE: nothing.
 */
static uint32_t probe(const struct mt_self *self, const struct window *w, uint64_t seq)
{
	const volatile struct mt_answer *answer = &mt_session.control->answers[self->ring.slot];
	uint32_t probes = answer->probes, status, made;

	mt_probe_send(self->ring.slot | (uint64_t)w->epoch << 32, seq, w->mask[0], w->start,
		      w->extent.end, mt_session.address.cookie, w->mask[1]);
	status = answer->status;
	made = answer->probes - probes;
	if (!made)
		return MT_PROBE_NONE;
	/* A handler's since then: the status may be of that. */
	return made == 1 ? status : MT_PROBE_BUSY;
}

/* MT_PROBE_SENT: *ret is the window's name. */
static uint32_t probe_delta(const struct mt_self *self, const struct window *w,
			    struct mt_stack_name *ret)
{
	const volatile struct mt_reference *reference = self->reference;
	uint32_t status = probe(self, w, w->seq), entry;
	uint64_t seq = reference->seq;
	bool ours;

	entry = reference->entry;
	/* A handler's probe after ours has another start: then this one is asked again. */
	ours = reference->start == w->start && reference->end == w->extent.end &&
	       reference->epoch == w->epoch;
	if (status == MT_PROBE_SENT && (!ours || seq & 1 || reference->seq != seq))
		return MT_PROBE_BUSY;
	*ret = named(entry, seq);
	return status;
}

/* The same of a window that BPF copies as it is. */
static uint32_t probe_raw(struct mt_self *self, const struct window *w, struct mt_stack_name *ret)
{
	uint32_t number = __atomic_fetch_add(&self->ring.head->alone, 1, __ATOMIC_RELAXED);

	*ret = alone(number, 0);
	return probe(self, w, number);
}

/* Brings pages in that are not present. */
static void touch(const struct window *w)
{
	uint64_t at;

	for (at = w->start; at < w->extent.end; at = (at | (MT_PAGE_BYTES - 1)) + 1)
		(void)mt_live_word((const __u64 *)at);
}

/* How often a window was tried, and why it was not captured. */
struct tries {
	unsigned faults, busy, torn;
};

enum verdict { VERDICT_DONE, VERDICT_AGAIN, VERDICT_LOST, VERDICT_NO_PROBE };

/* BPF does not come to it: the window as it is, on the thread's own ring. */
static enum verdict capture_without_probe(struct mt_self *self, const struct window *w,
					  struct tries *tries, struct mt_stack_name *ret)
{
	if (send_raw(self, w, ret))
		return VERDICT_DONE;
	tries->torn++;
	return VERDICT_AGAIN;
}

static enum verdict capture_by_probe(struct mt_self *self, struct window *w, struct tries *tries,
				     struct mt_stack_name *ret)
{
	uint32_t status;

	if (!self->reference) {
		w->epoch = __atomic_load_n(&mt_session.epoch, __ATOMIC_RELAXED);
		mt_modules_check(self);
		status = probe_raw(self, w, ret);
	} else {
		switch (look_at(self, w, ret)) {
		case WINDOW_KNOWN:
			return VERDICT_DONE;
		case WINDOW_TORN:
			tries->torn++;
			return VERDICT_AGAIN;
		default:
			break;
		}
		mt_modules_check(self);
		status = probe_delta(self, w, ret);
	}
	switch (status) {
	case MT_PROBE_SENT:
		return VERDICT_DONE;
	case MT_PROBE_FULL:
		return mt_ring_await_release(&self->ring, FULL_WAIT_NS) ? VERDICT_AGAIN
									: VERDICT_LOST;
	case MT_PROBE_FAULT:
		if (w->extent.shift) {
			tries->torn++; /* Behind this page it has gone since it was copied. */
			return VERDICT_AGAIN;
		}
		touch(w);
		if (++tries->faults > FAULTS_MAX)
			return capture_without_probe(self, w, tries, ret);
		return VERDICT_AGAIN;
	case MT_PROBE_BUSY:
		if (++tries->busy > BUSY_MAX)
			return capture_without_probe(self, w, tries, ret);
		return VERDICT_AGAIN;
	default:
		/* Not there any more, or not for this thread. */
		return VERDICT_NO_PROBE;
	}
}

static enum verdict capture_here(struct mt_self *self, struct window *w, struct tries *tries,
				 struct mt_stack_name *ret)
{
	enum outcome outcome;

	if (self->reference) {
		outcome = capture_inline(self, w, ret);
	} else {
		w->epoch = __atomic_load_n(&mt_session.epoch, __ATOMIC_RELAXED);
		mt_modules_check(self);
		outcome = send_raw(self, w, ret) ? OUTCOME_NAMED : OUTCOME_SPOILED;
	}
	if (outcome == OUTCOME_NAMED)
		return VERDICT_DONE;
	if (!mt_session.on || mt_ring_gives_up(&self->ring))
		return VERDICT_LOST;
	tries->torn += w->extent.shift != 0;
	return VERDICT_AGAIN;
}

/* A window whose chain is not learned yet; what is known of that. */
static __attribute__((noinline)) struct mt_stack_name
capture_window(struct mt_self **self_at, const uint64_t *saved, const struct mt_extent *extent,
	       struct mt_chain chain)
{
	struct mt_self *self = *self_at;
	struct window w = { .start = (uint64_t)saved, .extent = *extent };
	struct tries tries = { 0 };
	struct mt_stack_name name;
	enum verdict verdict;

	for (;;) {
		if (find_recent(self, &chain, &name))
			return name;
		w.compare = mt_compare_for(saved[MT_SAVED_RIP]);
		verdict = self->capture == MT_CAPTURE_EBPF
				  ? capture_by_probe(self, &w, &tries, &name)
				  : capture_here(self, &w, &tries, &name);
		if (verdict == VERDICT_DONE) {
			note_recent(self, &w, &chain, name);
			return name;
		}
		if (verdict == VERDICT_LOST)
			return lost();
		if (mt_session_orphaned()) {
			mt_session_end();
			*self_at = NULL;
			return lost();
		}
		if (verdict == VERDICT_NO_PROBE) {
			self = mt_thread_go_inline(saved);
			*self_at = self;
			if (!self)
				return lost();
		}
		w.extent = tries.torn < TORN_MAX ? mt_thread_window(self, w.start)
						 : mt_thread_window_on_page(w.start);
		if (find_learned(self, w.start, &w.extent, &chain))
			return (struct mt_stack_name){ MT_STACK_LEARNED, chain.name };
	}
}

struct mt_stack_name mt_capture(struct mt_self **self_at, const uint64_t *saved)
{
	uint64_t start = (uint64_t)saved;
	struct mt_extent extent;
	struct mt_chain chain;

	if (mt_session.flags & MT_RUN_NO_STACKS)
		return (struct mt_stack_name){ MT_STACK_NONE | MT_NONE_UNWANTED, 0 };
	if (start % 8)
		return lost();
	extent = mt_thread_window(*self_at, start);
	if (find_learned(*self_at, start, &extent, &chain))
		return (struct mt_stack_name){ MT_STACK_LEARNED, chain.name };
	return capture_window(self_at, saved, &extent, chain);
}
