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
 *   - helped: the position is staged with the cell, never read again; who finds staged_seq
 *     odd does the append before its own.  The compare-and-swaps need no lock prefix: only
 *     this thread's handlers come between.
 *   - The latch is set before the futex word is read, and the ring is looked at again before
 *     sleeping; the collector moves the tail, clears the latch, moves the word: whichever
 *     comes first, nobody sleeps through a release.
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
#define CELL_BYTES ((uint64_t)sizeof(struct mt_cell))

/*
 * Both ways return the bytes in the ring before the append.  Where these are more than leave
 * room for it (here: more than at_most), nothing was appended.
 */
static __attribute__((noinline)) uint64_t
append_rseq(const struct mt_ring *ring, const uint64_t *words, uint64_t n, uint64_t at_most)
{
	struct rseq *rseq = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t used, head, at, word, from, left;

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
		"4:\tleaq 3b(%%rip), %[used]\n\t"
		"movq %[used], %[cs]\n"
		"1:\tmovq %c[head_at](%[ring]), %[head]\n\t"
		"movq %[head], %[used]\n\t"
		"subq %c[tail_at](%[ring]), %[used]\n\t"
		"cmpq %[at_most], %[used]\n\t"
		"ja 2f\n\t"
		"movq %[words], %[from]\n\t"
		"movq %[n], %[left]\n"
		"5:\tmovl %c[bytes_at](%[self]), %k[at]\n\t"
		"decq %[at]\n\t"
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
		  [from] "=&r"(from), [left] "=&r"(left), [cs] "=m"(rseq->rseq_cs)
		: [ring] "r"(ring->head), [self] "r"(ring), [words] "r"(words), [n] "r"(n),
		  [at_most] "r"(at_most), [head_at] "i"(offsetof(struct mt_thread, head)),
		  [tail_at] "i"(offsetof(struct mt_thread, tail)),
		  [bytes_at] "i"(offsetof(struct mt_ring, bytes)),
		  [cells_at] "i"(offsetof(struct mt_ring, cells)), [cell_bytes] "i"(CELL_BYTES)
		: "memory", "cc");
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

/* What a handler has raised in between is not lowered again.  The collector may take the mark at
 * any time: what is stored after that is of the time after that. */
static void note_peak(const struct mt_ring *ring, uint64_t peak)
{
	uint64_t seen = VOLATILE(ring->head->peak_bytes);

	while (peak > seen && !swap(&ring->head->peak_bytes, seen, peak))
		seen = VOLATILE(ring->head->peak_bytes);
}

bool mt_ring_try(const struct mt_ring *ring, const struct mt_cell *cell)
{
	uint64_t used = ring->rseq ? append_rseq(ring, (const uint64_t *)cell, 1,
						 ring->bytes - CELL_BYTES)
				   : append_helped(ring, cell);

	note_peak(ring, used < ring->bytes ? used + CELL_BYTES : ring->bytes);
	return used < ring->bytes;
}

static void latch(const struct mt_ring *ring)
{
	struct mt_control *control = mt_session.control;
	uint64_t now = mt_now_ns();
	__u64 open = 0;

	if (!__atomic_compare_exchange_n(&control->latch, &open, now | 1, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	control->latch_time_ns = now;
	control->latch_ring = ring->slot;
	control->latch_slot = ring->slot;
}

/* Until the ring has at_most bytes in it, or WAIT_NS are over; false: the collector is gone. */
static bool wait_for_room(const struct mt_ring *ring, uint64_t at_most)
{
	struct timespec limit = { .tv_nsec = WAIT_NS };
	const uint32_t *futex = &mt_session.gate->futex;
	uint32_t f;

	latch(ring);
	f = __atomic_load_n(futex, __ATOMIC_ACQUIRE);
	if (VOLATILE(ring->head->head) - VOLATILE(ring->head->tail) > at_most)
		mt_syscall4(SYS_futex, (long)futex, FUTEX_WAIT, f, (long)&limit);
	if (!mt_session_orphaned())
		return true;
	mt_session_end();
	return false;
}

bool mt_ring_append(const struct mt_ring *ring, const struct mt_cell *cell)
{
	while (!mt_ring_try(ring, cell))
		if (!wait_for_room(ring, ring->bytes - CELL_BYTES)) {
			__atomic_fetch_add(&mt_session.control->lost_events, 1, __ATOMIC_RELAXED);
			return false;
		}
	return true;
}

bool mt_ring_append_blob(const struct mt_ring *ring, uint8_t kind, uint64_t *words, uint32_t bytes)
{
	uint64_t n = mt_blob_cells(bytes), at_most = ring->bytes - n * CELL_BYTES, used;

	words[0] = MT_CELL_HEAD(MT_CELL_BLOB, kind, 0, bytes);
	for (;;) {
		used = append_rseq(ring, words, n, at_most);
		if (used <= at_most)
			break;
		if (!wait_for_room(ring, at_most)) {
			__atomic_fetch_add(&mt_session.control->lost_events, 1, __ATOMIC_RELAXED);
			return false;
		}
	}
	note_peak(ring, used + n * CELL_BYTES);
	return true;
}

void mt_piece_begin(struct mt_piece_writer *writer, const struct mt_ring *ring, uint8_t kind,
		    uint16_t id, uint32_t bytes)
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

	if (!writer->failed)
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
