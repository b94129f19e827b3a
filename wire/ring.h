/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * ring.h - the per-thread rings: thread head, cells, and what cells mean
 *
 * All rings of a run lie in one memfd that the collector owns:
 *
 *   [0, 4096)                       struct mt_gate
 *   chunk c, at mt_chunk_offset():  MT_CHUNK_SLOTS pages of struct mt_thread, then
 *                                   MT_CHUNK_SLOTS rings of ring_bytes each
 *
 * The target maps the gate read-only, the heads of its chunks read-write, and a ring's
 * cells read-write from when one of its threads claims the slot.
 *
 * Writer: the one thread that holds the slot's mutex.  Reader: the collector.  An append
 * puts one cell of 32 bytes at head, or the cells of a blob, and moves head, as one
 * restartable sequence (rseq), or, where rseq is not registered, one cell as a helped append;
 * no reservation is ever open, so that a longjmp out of the middle loses nothing but the
 * call that it abandoned.  head and tail count bytes and never wrap; the place of a cell is
 * its count & (ring_bytes - 1).
 *
 * An event is on the ring before its effect can be seen by another thread: an allocation
 * before its address is returned, a free before the real free.  So an event that depends
 * on another has a later time and, when the collector reads the heads after the time that
 * it merges up to, the other is there: the order of a merge by time is the true order
 * for each address (collector/merge.h).
 */
#include <linux/types.h>

#include "wire/control.h"

#define MT_RING_BYTES (256 * 1024) /* default; a power of two, at least a page */

/* Whether the collector sleeps for longer than usual: mt_gate.rests. */
#define MT_REST_NONE 0
#define MT_REST_ON 1
#define MT_REST_OVER 2 /* and never will again */

/* The first page.  Written by the collector only. */
struct mt_gate {
	__u32 futex; /* moves after the latch was cleared; FUTEX_WAIT, FUTEX_WAKE all */
	/* MT_REST_*.  Who is about to wait at the futex, or has sent a stack, and finds MT_REST_ON
	 * here, wakes who waits here: FUTEX_WAKE 1. */
	__u32 rests;
	__u64 life[8]; /* a robust, shared pthread_mutex_t that the collector holds */
	__u8 spare1[MT_PAGE_BYTES - 72];
};

/* The head page of a slot.  Written by the target, except tail; the collector also takes
 * peak_bytes, in a run with statistics, and leaves 0. */
struct mt_thread {
	/* A robust, shared pthread_mutex_t, normal kind.  Claiming a slot is locking it:
	 * trylock says 0 (new), EOWNERDEAD (its thread ended: take over, go on at head) or
	 * EBUSY.  All-zero memory is an unlocked, not robust one: the shim initialises it
	 * at first claim (initialised moves 0 -> 1 -> 2 by compare-and-swap). */
	__u64 owner[8];
	__u32 initialised;
	/* Raw records so far, wire/stack_record.h: their numbers go on from owner to owner, so
	 * that one that an owner sent last, without its event, is never taken for another. */
	__u32 alone;
	/* The last episode (mt_control.latch) for which the owner parked, and when it did; 0, if
	 * it never has.  Without meaning once the latch is another. */
	__u64 parked_in;
	__u64 parked_ns;
	__u64 spare1[5];

	/* Bytes appended. */
	__u64 head __attribute__((aligned(64)));
	/* The greatest head - tail that an append saw, in bytes, since it was taken. */
	__u64 peak_bytes;
	/* Helped append: even: free; odd: staged[] is to be put at staged_at. */
	__u64 staged_seq;
	__u64 staged_at;
	__u64 staged[4];

	/* Bytes that the collector is done with. */
	__u64 tail __attribute__((aligned(64)));

	__u8 spare2[MT_PAGE_BYTES - 200];
};

struct mt_cell {
	__u64 head; /* MT_CELL_HEAD() */
	__u64 w[3];
};

_Static_assert(sizeof(struct mt_gate) == MT_PAGE_BYTES, "struct mt_gate changed size");
_Static_assert(sizeof(struct mt_thread) == MT_PAGE_BYTES, "struct mt_thread changed size");
_Static_assert(sizeof(struct mt_cell) == 32, "struct mt_cell changed size");

static inline __u64 mt_chunk_bytes(__u64 ring_bytes)
{
	return MT_CHUNK_SLOTS * (MT_PAGE_BYTES + ring_bytes);
}

/* Where a chunk begins in the memfd. */
static inline __u64 mt_chunk_offset(__u64 chunk, __u64 ring_bytes)
{
	return MT_PAGE_BYTES + chunk * mt_chunk_bytes(ring_bytes);
}

/*
 * A cell's head: type, kind, a half word and a word whose meaning the type gives.
 */
#define MT_CELL_HEAD(type, kind, half, word) \
	((__u64)(type) | (__u64)(kind) << 8 | (__u64)(half) << 16 | (__u64)(word) << 32)
#define MT_CELL_TYPE(head) ((__u8)(head))
#define MT_CELL_KIND(head) ((__u8)((head) >> 8))
#define MT_CELL_HALF(head) ((__u16)((head) >> 16))
#define MT_CELL_WORD(head) ((__u32)((head) >> 32))

/*
 * Types.  w[0] is the time, CLOCK_MONOTONIC ns of the target, in all but PIECE.
 *
 *   ALLOC          kind: MT_FN_* (wire/functions.h); half: stack name; word: seq;
 *                  w[1]: address; w[2]: size asked for.  Time: after the real call.
 *   FREE           kind: MT_FN_*; w[1]: address, not 0.  Time: before the real call.
 *   REALLOC_BEGIN  kind: MT_FN_*; w[1]: old address, not 0.  Frees it tentatively.
 *   REALLOC_END    like ALLOC, and ends the thread's last REALLOC_BEGIN; w[1] 0: the call
 *                  failed and the old block lives on (word, half and w[2] then 0);
 *                  kind's top bit set: p is freed and this allocated nothing, as
 *                  realloc(p, 0), or where the new block has an ALLOC of its own.
 *   PROCESS        a process's first cell; kind: MT_PROCESS_*; w[1]: its number (see
 *                  mt_control.next_process); w[2]: a fork's child: its parent's
 *   THREAD         a thread claimed this ring, all cells from here are its own;
 *                  kind: MT_CAPTURE_* of the slot; half: ring generation, counted by the
 *                  claims of the slot; word: seq at the claim;
 *                  w[1]: number of its process; w[2]: tid << 32 | tgid, of the root PID
 *                  namespace where BPF captures, else as the target sees them; comes
 *                  before the PROCESS cell
 *   PIECE          24 bytes, w[], of a record that is not a blob; kind:
 *                  MT_RECORD_*; half: its index from 0; word: id << 16 | pieces, with the
 *                  id counting up in each ring.  Pieces of records whose captures
 *                  interrupted one another may be interleaved.  A record whose pieces do
 *                  not all come was abandoned.
 *   LOSS           w[1]: events of this thread that could not be appended before this
 *   BLOB           a record that lies in one piece in this cell's w[] and the cells behind
 *                  it, which are appended with it; kind: MT_RECORD_*; word: its bytes, a
 *                  multiple of 8; in mt_blob_cells() cells, the rest of the last unused
 */
#define MT_CELL_ALLOC 1
#define MT_CELL_FREE 2
#define MT_CELL_REALLOC_BEGIN 3
#define MT_CELL_REALLOC_END 4
#define MT_CELL_PROCESS 5
#define MT_CELL_THREAD 6
#define MT_CELL_PIECE 7
#define MT_CELL_LOSS 8
#define MT_CELL_BLOB 9

#define MT_REALLOC_FREED 0x80 /* in REALLOC_END's kind */

#define MT_PROCESS_START 1 /* shook hands: a new image */
#define MT_PROCESS_FORK 2  /* a fork's child; has its parent's modules */

#define MT_PIECE_BYTES 24
#define MT_RECORD_MODULE 1 /* struct mt_module_record */
#define MT_RECORD_STACK 2  /* struct mt_stack_record: inline, and raw ones */
#define MT_RECORD_NOTE 3   /* struct mt_note_record */
#define MT_RECORD_MAX_BYTES (MT_BUDGET_MAX_BYTES + 4096)

/* The cells of a blob, its first included. */
static inline __u32 mt_blob_cells(__u32 bytes)
{
	return 1 + (bytes > MT_PIECE_BYTES ? (bytes - MT_PIECE_BYTES + 31) / 32 : 0);
}

/*
 * An event's stack: the half word of ALLOC and REALLOC_END.
 *   below MT_DICTIONARY   the window whose digest is in that entry of the slot's dictionary
 *                         once the records up to seq (the word) are applied
 *   MT_STACK_LEARNED      the chain that the word names, as the collector has taught the
 *                         thread (wire/learned.h)
 *   MT_STACK_ALONE | n    the RAW record whose seq field is n (mod 0x4000)
 *   MT_STACK_NONE | r     no stack; r: MT_NONE_*
 */
#define MT_STACK_LEARNED 0x2000
#define MT_STACK_ALONE 0x4000
#define MT_STACK_NONE 0x8000
#define MT_NONE_BOOTSTRAP 1 /* before the shim was ready */
#define MT_NONE_LOST 2	    /* could not be captured; counted in mt_control.lost_stacks */
#define MT_NONE_UNWANTED 3  /* MT_RUN_NO_STACKS */

/* The modules of a process, sent before the first stack record that could need them.  One
 * that says FIRST begins a list of all, which is the process's once one that says END, and
 * nothing else, has ended it; without such a list it is one more. */
struct mt_module_record {
	__u32 len;   /* of the record with the path and its NUL; a multiple of 8 */
	__u32 flags; /* MT_MODULE_* */
	__u64 time_ns;
	__u64 bias;  /* run-time address - ELF virtual address */
	__u64 start; /* run-time bounds of its loadable segments */
	__u64 end;
	__u64 dev; /* of the file at path, where there is no build-id; 0 if unknown */
	__u64 ino;
	__u8 build_id[20];
	__u32 build_id_bytes; /* 0: has none, or one that is longer */
			      /* char path[]; NUL-terminated, padded with zeros */
};

#define MT_MODULE_FIRST 1 /* this is the first of all: those before it are over at END */
#define MT_MODULE_MAIN 2  /* the executable */
#define MT_MODULE_VDSO 4
#define MT_MODULE_END 8

/* Something that the shim can not serve, in words: "not tracked: PID WHAT (reason)". */
struct mt_note_record {
	__u32 len;    /* of the record with the text and its NUL; a multiple of 8 */
	__u32 reason; /* MT_NOTE_* */
	__u64 time_ns;
	/* char what[]; NUL-terminated, padded with zeros: a module's path */
};

#define MT_NOTE_OWN_ALLOCATOR 1	  /* the executable defines malloc itself */
#define MT_NOTE_BOUND_ELSEWHERE 2 /* a module's malloc is bound to another (RTLD_DEEPBIND) */
#define MT_NOTE_OTHER_NAMESPACE 3 /* dlmopen */
#define MT_NOTE_SANITIZER 4	  /* malloc is that of a sanitizer's runtime */

_Static_assert(sizeof(struct mt_module_record) == 80, "struct mt_module_record changed size");
_Static_assert(sizeof(struct mt_note_record) == 16, "struct mt_note_record changed size");
