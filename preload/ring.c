/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ring.c - see ring.h
 *
 * Invariants
 *   - The cell is written before head moves past it (x86-64 keeps the order of stores), and
 *     both happen, or neither, whatever interrupts and wherever it jumps.
 *   - rseq: the kernel restarts the section from "4:" when it was preempted in it, or a
 *     signal came; the store of head is its last instruction.  The handler of that signal
 *     has "4:" for its caller, which so has to be covered by the function's call-frame
 *     information.  A vfork's child runs on its parent's ring without a registration of its
 *     own; its parent is suspended then.
 *   - A thread that is stepped, by a debugger or by its own trap flag, comes to no end of a
 *     section: it is restarted at each step.  After RESTARTS_MAX of them in one append the
 *     ring is helped for good: both ways at a time do not know of each other's cells.  So a
 *     section looks, too, whether a handler has decided that meanwhile.
 *   - A program may take the registration away; then the kernel has left a negative number for
 *     the processor's, and the ring is helped, too.
 *   - A handler may fork in the middle of an append, and its child come back from there.  The
 *     ring is its parent's, who does the append; to the child it happened before the fork.  A
 *     section looks whether the process still is the one that it was when the ring's head was
 *     read.  helped: only who begins an append looks.
 *   - helped: the position is staged with the cell, never read again; who finds staged_seq
 *     odd does the append before its own.  The compare-and-swaps need no lock prefix: only
 *     this thread's handlers come between.
 *   - Who waits reads the futex word first, then sets or reads the latch, then looks at its
 *     ring, then sleeps, if the word has not moved.  The collector moves the tail, clears the
 *     latch, moves the word, wakes.  Either the latch was seen cleared; or it was seen set, or
 *     set, before it is cleared, and then the word moves after it was read, so that the sleep
 *     does not begin or is ended.  The swap of the latch is a full barrier, as are both stores
 *     of the collector; the reads are in order because each is an acquire.
 *     tests/model/park.py looks at all interleavings.
 *   - The watermark is a level, not an edge: an append over it latches, whatever the one
 *     before did.  One that finds the old episode still latched is followed by another.
 *   - A thread parks for an episode where it has nothing half done: not in an append, not
 *     between a stack's record and its event.  A handler may leave from there by a jump; what
 *     stays in the head page means nothing when the latch is another.
 */
#include "preload/ring.h"

#include <linux/futex.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <time.h>

#include "preload/glibc.h"
#include "preload/real.h"
#include "preload/session.h"
#include "preload/syscall.h"

#define WAIT_NS (100 * 1000 * 1000)
/* From one look at the clock to the next. */
#define WATCH_PAUSES 64
#define CELL_BYTES ((uint64_t)sizeof(struct mt_cell))
/* More than chance makes of preemptions and signals, one after the other. */
#define RESTARTS_MAX 64
/* For the bytes in the ring: it is not, or no more, appended to by a restartable sequence. */
#define NOT_BY_RSEQ UINT64_MAX
/* Nor is it ours: this is a fork's child, which goes on with an append of its parent's. */
#define NOT_OURS (UINT64_MAX - 1)

/*
 * Both ways return the bytes in the ring before the append.  Where these are more than leave
 * room for it (here: more than at_most), as NOT_BY_RSEQ and NOT_OURS are, nothing was appended.
 */
static __attribute__((noinline)) uint64_t append_rseq(struct mt_ring *ring, const uint64_t *words,
						      uint64_t n, uint64_t at_most)
{
	struct rseq *rseq = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t token = __atomic_load_n(mt_session.fork_word, __ATOMIC_ACQUIRE);
	uint64_t used, head, at, word, from, left, tries = RESTARTS_MAX;

	if (token <= MT_FORK_BUSY)
		return NOT_OURS;
	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n\t"
		".balign 32\n"
		"3:\t.long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		"jmp 4f\n\t"
		/* ud1 with the signature as its operand, as the C library registered it. */
		".byte 0x0f, 0xb9, 0x3d\n\t"
		".long 0x53053053\n"
		"4:\tmovq %[not_by_rseq], %[used]\n\t"
		"decq %[tries]\n\t"
		"jz 2f\n\t"
		"leaq 3b(%%rip), %[at]\n\t"
		"movq %[at], %[cs]\n"
		"1:\tcmpl $0, %c[rseq_at](%[self])\n\t"
		"je 2f\n\t"
		"cmpl $0, %[cpu]\n\t"
		"jl 2f\n\t"
		"movq %[fork_word], %[at]\n\t"
		"movq (%[at]), %[at]\n\t"
		"cmpq %[token], %[at]\n\t"
		"movq %[not_ours], %[used]\n\t"
		"jne 2f\n\t"
		"movq %c[head_at](%[ring]), %[head]\n\t"
		"movq %[head], %[used]\n\t"
		"subq %c[tail_at](%[ring]), %[used]\n\t"
		"cmpq %[at_most], %[used]\n\t"
		"ja 2f\n\t"
		"movq %[words], %[from]\n\t"
		"movq %[n], %[left]\n"
		"5:\tmovl %c[bytes_at](%[self]), %k[at]\n\t"
		"subq $%c[cell_bytes], %[at]\n\t"
		"andq %[head], %[at]\n\t"
		"addq %c[cells_at](%[self]), %[at]\n\t"
		"movq (%[from]), %[word]\n\t"
		"movq %[word], (%[at])\n\t"
		"movq 8(%[from]), %[word]\n\t"
		"movq %[word], 8(%[at])\n\t"
		"movq 16(%[from]), %[word]\n\t"
		"movq %[word], 16(%[at])\n\t"
		"movq 24(%[from]), %[word]\n\t"
		"movq %[word], 24(%[at])\n\t"
		"addq $%c[cell_bytes], %[from]\n\t"
		"addq $%c[cell_bytes], %[head]\n\t"
		"decq %[left]\n\t"
		"jnz 5b\n\t"
		"movq %[head], %c[head_at](%[ring])\n"
		"2:"
		: [used] "=&r"(used), [head] "=&r"(head), [at] "=&r"(at), [word] "=&r"(word),
		  [from] "=&r"(from), [left] "=&r"(left), [tries] "+&r"(tries),
		  [cs] "=m"(rseq->rseq_cs)
		: [ring] "r"(ring->head), [self] "r"(ring), [words] "r"(words), [n] "r"(n),
		  [at_most] "r"(at_most), [head_at] "i"(offsetof(struct mt_thread, head)),
		  [tail_at] "i"(offsetof(struct mt_thread, tail)),
		  [bytes_at] "i"(offsetof(struct mt_ring, bytes)),
		  [cells_at] "i"(offsetof(struct mt_ring, cells)),
		  [rseq_at] "i"(offsetof(struct mt_ring, rseq)), [cpu] "m"(rseq->cpu_id),
		  [cell_bytes] "i"(CELL_BYTES), [not_by_rseq] "i"(NOT_BY_RSEQ),
		  [not_ours] "i"(NOT_OURS), [token] "m"(token),
		  [fork_word] "m"(mt_session.fork_word)
		: "memory", "cc");
	if (__builtin_expect(used == NOT_BY_RSEQ, 0))
		ring->rseq = 0;
	return used;
}

/* Atomic against this thread's handlers only. */
static bool swap(__u64 *word, uint64_t from, uint64_t to)
{
	bool swapped;

	__asm__ volatile("cmpxchgq %[to], %[word]\n\tsete %[swapped]"
			 : [swapped] "=q"(swapped), [word] "+m"(*word), "+a"(from)
			 : [to] "r"(to)
			 : "memory", "cc");
	return swapped;
}

#define VOLATILE(word) (*(volatile __u64 *)&(word))

static void put(struct mt_thread *head, char *cells, uint32_t bytes, uint64_t seq)
{
	uint64_t at = VOLATILE(head->staged_at);
	uint64_t w0 = VOLATILE(head->staged[0]), w1 = VOLATILE(head->staged[1]);
	uint64_t w2 = VOLATILE(head->staged[2]), w3 = VOLATILE(head->staged[3]);
	volatile uint64_t *cell = (uint64_t *)(cells + (at & (bytes - 1) & ~(CELL_BYTES - 1)));

	/* What was read belongs to this seq, or a handler has done it all. */
	if (VOLATILE(head->staged_seq) != seq)
		return;
	cell[0] = w0;
	cell[1] = w1;
	cell[2] = w2;
	cell[3] = w3;
	swap(&head->head, at, at + CELL_BYTES);
	swap(&head->staged_seq, seq, seq + 1);
}

static uint64_t append_helped(const struct mt_ring *ring, const struct mt_cell *cell)
{
	struct mt_thread *head = ring->head;

	for (;;) {
		uint64_t seq = VOLATILE(head->staged_seq), at, used;

		if (seq & 1) {
			put(head, ring->cells, ring->bytes, seq);
			continue;
		}
		at = VOLATILE(head->head);
		used = at - VOLATILE(head->tail);
		if (used >= ring->bytes)
			return used;
		VOLATILE(head->staged[0]) = cell->head;
		VOLATILE(head->staged[1]) = cell->w[0];
		VOLATILE(head->staged[2]) = cell->w[1];
		VOLATILE(head->staged[3]) = cell->w[2];
		VOLATILE(head->staged_at) = at;
		if (!swap(&head->staged_seq, seq, seq + 1))
			continue;
		put(head, ring->cells, ring->bytes, seq + 1);
		return used;
	}
}

void mt_ring_take_over(const struct mt_ring *ring)
{
	uint64_t seq = VOLATILE(ring->head->staged_seq);

	if (seq & 1)
		put(ring->head, ring->cells, ring->bytes, seq);
}

/* Latches an episode, unless one is latched. */
static __attribute__((noinline)) void latch(const struct mt_ring *ring)
{
	__u64 *word = &mt_session.control->latch, open = 0;

	if (__atomic_load_n(word, __ATOMIC_RELAXED))
		return;
	__atomic_compare_exchange_n(word, &open, MT_LATCH(MT_LATCH_THREAD, ring->slot, mt_now_ns()),
				    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* What an append, or one that found no room, has seen of the ring.  A peak that a handler has
 * raised in between is not lowered again.  The collector may take the mark at any time: what
 * is stored after that is of the time after that. */
static inline void note_fill(const struct mt_ring *ring, uint64_t fill)
{
	uint64_t seen = VOLATILE(ring->head->peak_bytes);

	while (fill > seen && !swap(&ring->head->peak_bytes, seen, fill))
		seen = VOLATILE(ring->head->peak_bytes);
	if (__builtin_expect(fill >= ring->watermark, 0))
		latch(ring);
}

bool mt_ring_try(struct mt_ring *ring, const struct mt_cell *cell)
{
	uint64_t used = NOT_BY_RSEQ;

	if (ring->rseq)
		used = append_rseq(ring, (const uint64_t *)cell, 1, ring->bytes - CELL_BYTES);
	if (used == NOT_BY_RSEQ)
		used = mt_session_forked() ? NOT_OURS : append_helped(ring, cell);
	if (__builtin_expect(used == NOT_OURS, 0))
		return true;
	note_fill(ring, used < ring->bytes ? used + CELL_BYTES : ring->bytes);
	return used < ring->bytes;
}

/* Without a system call; the clock is not looked at each time, as it may stand still. */
static void watch_gate(uint32_t f, uint64_t at_most_ns)
{
	uint64_t end_ns = mt_now_ns() + at_most_ns;

	do
		for (int i = 0; i < WATCH_PAUSES; i++) {
			if (__atomic_load_n(&mt_session.gate->futex, __ATOMIC_ACQUIRE) != f)
				return;
			__builtin_ia32_pause();
		}
	while (mt_now_ns() < end_ns);
}

void mt_ring_wake_collector(void)
{
	const struct mt_gate *gate = mt_session.gate;

	if (__atomic_load_n(&gate->rests, __ATOMIC_ACQUIRE) == MT_REST_ON && !mt_sandbox)
		mt_syscall3(SYS_futex, (long)&gate->rests, FUTEX_WAKE, 1);
}

/* Sleeps, unless the gate's word is not f any more; false: the collector is gone.  A collector
 * that rests does not see by itself that the latch is set, as it was before. */
static bool sleep_at_gate(uint32_t f, long at_most_ns)
{
	struct timespec limit = { .tv_nsec = at_most_ns };

	mt_ring_wake_collector();
	if (mt_sandbox)
		watch_gate(f, at_most_ns);
	else
		mt_syscall4(SYS_futex, (long)&mt_session.gate->futex, FUTEX_WAIT, f, (long)&limit);
	if (!mt_session_orphaned())
		return true;
	mt_session_end();
	return false;
}

/* For the collector, which tells who was paused, and for how long. */
static void note_parked(const struct mt_ring *ring, uint64_t episode)
{
	struct mt_thread *head = ring->head;

	if (head->parked_in == episode)
		return;
	head->parked_ns = mt_now_ns();
	__atomic_store_n(&head->parked_in, episode, __ATOMIC_RELEASE);
}

/* Until the ring has at_most bytes in it, or WAIT_NS are over; false: the collector is gone. */
static bool wait_for_room(const struct mt_ring *ring, uint64_t at_most)
{
	uint32_t f = __atomic_load_n(&mt_session.gate->futex, __ATOMIC_ACQUIRE);
	uint64_t episode;

	latch(ring);
	if (__atomic_load_n(&ring->head->head, __ATOMIC_RELAXED) -
		    __atomic_load_n(&ring->head->tail, __ATOMIC_ACQUIRE) <=
	    at_most)
		return true;
	episode = __atomic_load_n(&mt_session.control->latch, __ATOMIC_RELAXED);
	if (episode)
		note_parked(ring, episode);
	return sleep_at_gate(f, WAIT_NS);
}

static bool never_waits(void)
{
	return mt_session.control->pause == MT_PAUSE_NEVER;
}

static bool give_up(void)
{
	__atomic_fetch_add(&mt_session.control->lost_events, 1, __ATOMIC_RELAXED);
	return false;
}

bool mt_ring_append(struct mt_ring *ring, const struct mt_cell *cell)
{
	while (!mt_ring_try(ring, cell))
		if (!wait_for_room(ring, ring->bytes - CELL_BYTES))
			return give_up();
	return true;
}

bool mt_ring_append_event(struct mt_ring *ring, const struct mt_cell *cell)
{
	if (mt_ring_try(ring, cell))
		return true;
	return never_waits() ? give_up() : mt_ring_append(ring, cell);
}

bool mt_ring_gives_up(const struct mt_ring *ring)
{
	uint64_t fill = VOLATILE(ring->head->head) - VOLATILE(ring->head->tail);

	return never_waits() && fill > ring->bytes / 2;
}

void mt_ring_park(const struct mt_ring *ring)
{
	const struct mt_control *control = mt_session.control;
	uint64_t episode;
	uint32_t f;

	if (control->pause != MT_PAUSE_FUTEX)
		return;
	for (;;) {
		f = __atomic_load_n(&mt_session.gate->futex, __ATOMIC_ACQUIRE);
		episode = __atomic_load_n(&control->latch, __ATOMIC_ACQUIRE);
		if (!episode || !__atomic_load_n(&control->enabled, __ATOMIC_RELAXED))
			return;
		note_parked(ring, episode);
		if (!sleep_at_gate(f, WAIT_NS))
			return;
	}
}

bool mt_ring_await_release(const struct mt_ring *ring, long at_most_ns)
{
	uint32_t f = __atomic_load_n(&mt_session.gate->futex, __ATOMIC_ACQUIRE);
	uint64_t episode = __atomic_load_n(&mt_session.control->latch, __ATOMIC_ACQUIRE);

	if (never_waits())
		return false;
	if (!episode)
		return true;
	note_parked(ring, episode);
	sleep_at_gate(f, at_most_ns);
	return true;
}

bool mt_ring_append_blob(struct mt_ring *ring, uint8_t kind, uint64_t *words, uint32_t bytes)
{
	uint64_t n = mt_blob_cells(bytes), at_most = ring->bytes - n * CELL_BYTES, used;

	words[0] = MT_CELL_HEAD(MT_CELL_BLOB, kind, 0, bytes);
	for (;;) {
		used = append_rseq(ring, words, n, at_most);
		if (used <= at_most)
			break;
		if (used == NOT_BY_RSEQ || used == NOT_OURS)
			return false;
		note_fill(ring, used);
		if (never_waits())
			return false;
		if (!wait_for_room(ring, at_most))
			return give_up();
	}
	note_fill(ring, used + n * CELL_BYTES);
	return true;
}

void mt_piece_begin(struct mt_piece_writer *writer, struct mt_ring *ring, uint8_t kind, uint16_t id,
		    uint32_t bytes)
{
	*writer = (struct mt_piece_writer){ 0 };
	writer->ring = ring;
	writer->kind = kind;
	writer->word = (uint32_t)id << 16 | mt_ring_pieces(bytes);
}

static void flush(struct mt_piece_writer *writer)
{
	struct mt_cell cell = {
		.head = MT_CELL_HEAD(MT_CELL_PIECE, writer->kind, writer->index, writer->word),
		.w = { writer->w[0], writer->w[1], writer->w[2] },
	};

	if (!writer->failed && writer->kind == MT_RECORD_STACK && never_waits())
		writer->failed = !mt_ring_try(writer->ring, &cell);
	else if (!writer->failed)
		writer->failed = !mt_ring_append(writer->ring, &cell);
	writer->index++;
	writer->n = 0;
	writer->w[1] = 0;
	writer->w[2] = 0;
}

void mt_piece_word(struct mt_piece_writer *writer, uint64_t word)
{
	if (writer->n == 3)
		flush(writer);
	writer->w[writer->n++] = word;
}

bool mt_piece_end(struct mt_piece_writer *writer)
{
	if (writer->n)
		flush(writer);
	return !writer->failed;
}
