/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * thread.h - a thread's slot, and where its stack is
 *
 * Contract
 *   Input:     stack pointers of the calling thread, on whatever stack it runs
 *   Ownership: a slot is held until the thread ends, in whatever way; the kernel lets go
 *   Errors:    NULL: no slot (counted), or not tracked
 *   Threads:   each its own; a vfork's child uses its parent's
 *   Bounds:    no lock that another thread may hold for longer than a hand-shake, no
 *              allocation; 160 bytes of TLS
 */
#include <stdbool.h>
#include <stdint.h>

#include "preload/ring.h"
#include "preload/session.h"

#pragma GCC visibility push(hidden)

/* What a real function that ends a block is about to end; serve.c. */
struct mt_ending {
	const void *block;
	uint64_t sp;	  /* of the frame that takes this away again */
	uint32_t pending; /* the function whose REALLOC_BEGIN of it has no end yet, or 0 */
};

struct mt_self {
	uint64_t token; /* mt_session_token() that it was claimed with; 0: no slot */
	struct mt_ring ring;
	struct mt_reference *reference; /* NULL: windows are raw */
	struct mt_scratch *scratch;	/* NULL: BPF encodes, or windows are raw */
	uint64_t bound;			/* the end of the thread's stack; 0: not known yet */
	uint64_t low_known;		/* from here to bound all is readable */
	uint64_t low_failed;		/* a page below it that is not */
	struct mt_own *own;		/* the slot's */
	/* capture.c: the start of the window whose record is being made, or 0; where its
	 * frame has its mark, and that. */
	uint64_t capture_start;
	const volatile uint64_t *capture_mark;
	uint64_t capture_number;
	uint32_t unserved; /* events since no slot was found */
	uint32_t copies;   /* windows that were copied, or are being */
	uint16_t piece_id;
	uint16_t capture; /* MT_CAPTURE_* of the slot */
	const void *made; /* the block recorded last, within the real function called last */
	struct mt_ending ending;
};

_Static_assert(sizeof(struct mt_self) <= 160, "static TLS is scarce");

extern __thread struct mt_self mt_self __attribute__((tls_model("initial-exec")));

/* The slow way of mt_thread_self(). */
struct mt_self *mt_thread_claim(const void *sp);

/* The calling thread with its slot, or NULL. */
static inline struct mt_self *mt_thread_self(const void *sp)
{
	struct mt_self *self = &mt_self;

	if (__builtin_expect(self->token && self->token == *mt_session.fork_word, 1))
		return self;
	return mt_thread_claim(sp);
}

/*
 * For a thread whose slot's probe is not there (any more): a slot that captures inline, or
 * NULL.
 */
struct mt_self *mt_thread_go_inline(const void *sp);

/* Where a window ends, and where its words can be read. */
struct mt_extent {
	uint64_t end;
	uint64_t shift;	 /* from a word's address to where it is read; 0: on its stack */
	uint32_t copies; /* else it is this one of self->copies */
};

/*
 * The window that starts at start.  On the thread's own stack and on its signal stack the
 * words stay where they are; another stack may lose its neighbour, whoever owns that, and
 * is copied.
 *
 * What was once found readable of those two is taken to stay so: a program that protects a
 * page between its frames there gets the fault that reading it means.  To ask the kernel
 * for each window costs more than all else that is done for a block, and an answer that is
 * remembered is as old as the one that is taken for granted.
 */
struct mt_extent mt_thread_window(struct mt_self *self, uint64_t start);

/*
 * Learns whether the thread's own stack can be read from some way below sp on, as that can not
 * be asked later.  What is known already is not asked for: the main thread's stack does not grow.
 */
void mt_thread_look_ahead(struct mt_self *self, uint64_t sp);

/* As mt_thread_window(), of no more than the start's page, which can not go. */
struct mt_extent mt_thread_window_on_page(uint64_t start);

/* Has a handler copied a window of its own over this one? */
static inline bool mt_thread_copy_torn(const struct mt_self *self, const struct mt_extent *extent)
{
	return extent->shift && *(const volatile uint32_t *)&self->copies != extent->copies;
}

/* Reads what is at at, wherever that is; how much of it could be, or a negative errno. */
long mt_thread_read(uint64_t at, void *ret, uint64_t bytes);

/* Does at lie on the thread's own stack, as far as that is known? */
static inline bool mt_thread_on_stack(const struct mt_self *self, uint64_t at)
{
	return at >= self->low_known && at < self->bound;
}

#pragma GCC visibility pop
