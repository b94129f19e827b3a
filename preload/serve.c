/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * serve.c - the C side of the entry stubs, entry.h
 *
 * Invariants
 *   - Before the real functions are known only hidden data is touched: no TLS, errno, or
 *     function of another object.
 *   - An event is on the ring before its effect can be seen: of an allocation before its
 *     address is returned, of a free before the real free (wire/ring.h).
 *   - There is no nest guard.  Each block is recorded by the function that makes it; a real
 *     function that does nothing but call an interposed one is jumped to (real.c).
 *   - Another's realloc() may call malloc() and free() by name, so the stubs; its calloc(),
 *     operators and so on likewise.  What two calls make, or end, is recorded once: made by
 *     the inner one, which is done first; ended by the outer one, which is begun first.  Both
 *     are known by the block: the one recorded last since the real function was called
 *     (made), the one that a frame further out is about to end (ending).  Who leaves by an
 *     exception or a longjmp leaves marks behind: made is reset before each call, ending is
 *     believed only in frames below the one that it names, and not once the block was made
 *     anew.
 *   - The C library's errno is the program's: what is done here for an event leaves it
 *     alone, because it makes system calls by itself.
 */
#include <errno.h>
#include <stdbool.h>

#include "preload/arena.h"
#include "preload/capture.h"
#include "preload/entry.h"
#include "preload/modules.h"
#include "preload/real.h"
#include "preload/session.h"
#include "preload/thread.h"

static inline bool tracked(void)
{
	return mt_session.on && __atomic_load_n(&mt_session.control->enabled, __ATOMIC_RELAXED);
}

/* An allocation, or the end of a reallocation, of a known window.  False: not tracked. */
static bool record_block(uint8_t type, long number, uint64_t *saved, const void *p, size_t size)
{
	struct mt_stack_name name;
	struct mt_self *self;
	struct mt_cell cell;

	if (!mt_session_decided() && mt_arena_note(MT_CELL_ALLOC, number, p, size))
		return true;
	if (!tracked())
		return false;
	self = mt_thread_self(saved);
	if (!self)
		goto lost;
	mt_modules_watch(saved);
	name = mt_capture(&self, saved);
	if (!self)
		goto lost;
	cell.head = MT_CELL_HEAD(type, number, name.half, name.word);
	cell.w[0] = mt_now_ns();
	cell.w[1] = (uint64_t)p;
	cell.w[2] = size;
	mt_ring_append_event(&self->ring, &cell);
	mt_ring_heed(&self->ring);
	return true;
lost:
	__atomic_fetch_add(&mt_session.control->lost_events, 1, __ATOMIC_RELAXED);
	return true;
}

/* An event without a window. */
static void record(uint8_t type, long number, const void *sp, const void *p)
{
	struct mt_self *self;
	struct mt_cell cell = {
		.head = MT_CELL_HEAD(type, number, 0, 0),
		.w = { 0, (uint64_t)p, 0 },
	};

	if (!mt_session_decided() && mt_arena_note(MT_CELL_FREE, number, p, 0))
		return;
	if (!tracked())
		return;
	self = mt_thread_self(sp);
	if (!self) {
		__atomic_fetch_add(&mt_session.control->lost_events, 1, __ATOMIC_RELAXED);
		return;
	}
	cell.w[0] = mt_now_ns();
	mt_ring_append_event(&self->ring, &cell);
	mt_ring_heed(&self->ring);
}

/* A block of the arena, as the real functions are not known. */
static void *serve_early(long number, size_t align, size_t size)
{
	void *p = mt_arena_alloc(align, size);

	if (p)
		mt_arena_note(MT_CELL_ALLOC, number, p, size);
	return p;
}

/* The real function, to be called right away. */
static inline void *real_of(long number)
{
	if (mt_real_nests)
		mt_self.made = NULL;
	return mt_real[number];
}

/* Was the block made, and recorded, by a call within the real function? */
static inline bool made_within(const void *p)
{
	return mt_real_nests && mt_self.made == p;
}

static inline void record_made(uint8_t type, long number, uint64_t *saved, const void *p,
			       size_t size)
{
	bool recorded = record_block(type, number, saved, p, size);

	if (!mt_real_nests)
		return;
	mt_self.made = recorded ? p : NULL;
	if (mt_self.ending.block == p)
		mt_self.ending.block = NULL;
}

static inline void *made(long number, uint64_t *saved, void *p, size_t size)
{
	if (p && !made_within(p))
		record_made(MT_CELL_ALLOC, number, saved, p, size);
	return p;
}

/* How far below the frame that called a real function others are taken for called by it. */
#define NEST_BYTES (64 * 1024)

/*
 * Marks the block as about to be ended by the frame at sp.  Returns the mark of a frame
 * further out, which is to be put back once the real function has returned.
 */
static struct mt_ending mark_ending(const void *p, uint64_t sp, uint32_t pending)
{
	struct mt_ending outer = mt_self.ending;

	if (outer.sp - sp - 1 >= NEST_BYTES)
		outer = (struct mt_ending){ 0 };
	mt_self.ending = (struct mt_ending){ .block = p, .sp = sp, .pending = pending };
	if (mt_self.made == p)
		mt_self.made = NULL;
	return outer;
}

void *mt_serve_malloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number)
{
	void *(*real)(size_t);

	if (!mt_session_usable())
		return serve_early(number, 0, size);
	real = real_of(number);
	return made(number, saved, real(size), size);
}

void *mt_serve_valloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number)
{
	void *(*real)(size_t);

	if (!mt_session_usable())
		return serve_early(number, MT_PAGE_BYTES, size);
	real = real_of(number);
	return made(number, saved, real(size), size);
}

void *mt_serve_pvalloc(size_t size, size_t unused1, size_t unused2, uint64_t *saved, long number)
{
	return mt_serve_valloc(size, 0, 0, saved, number);
}

void *mt_serve_calloc(size_t n, size_t size, size_t unused, uint64_t *saved, long number)
{
	void *(*real)(size_t, size_t);
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX; /* The real one says so. */
	if (!mt_session_usable())
		return serve_early(number, 0, bytes);
	real = real_of(number);
	return made(number, saved, real(n, size), bytes);
}

void *mt_serve_memalign(size_t align, size_t size, size_t unused, uint64_t *saved, long number)
{
	void *(*real)(size_t, size_t);

	if (!mt_session_usable())
		return align & (align - 1) ? NULL : serve_early(number, align, size);
	real = real_of(number);
	return made(number, saved, real(align, size), size);
}

void *mt_serve_aligned_alloc(size_t align, size_t size, size_t unused, uint64_t *saved, long number)
{
	return mt_serve_memalign(align, size, 0, saved, number);
}

long mt_serve_posix_memalign(void **ret, size_t align, size_t size, uint64_t *saved, long number)
{
	int (*real)(void **, size_t, size_t);
	void *p;
	int err;

	if (!mt_session_usable()) {
		p = align & (align - 1) || align % sizeof(p) || !align
			    ? NULL
			    : serve_early(number, align, size);
		if (!p)
			return ENOMEM;
		*ret = p;
		return 0;
	}
	real = real_of(number);
	err = real(ret, align, size);
	if (!err)
		made(number, saved, *ret, size);
	return err;
}

/* The real realloc() or reallocarray(); *freed: there is no block any more. */
static void *move_block(void *p, size_t n, size_t size, long number, bool *freed)
{
	void *(*realloc_real)(void *, size_t) = real_of(number);
	void *(*reallocarray_real)(void *, size_t, size_t) = (void *)realloc_real;
	bool ends = !n || !size;
	int err = errno;
	void *q;

	/* Freed, or refused: only errno tells. */
	if (ends)
		errno = 0;
	q = number == MT_FN_realloc ? realloc_real(p, size) : reallocarray_real(p, n, size);
	if (!ends)
		return q;
	*freed = p && !q && errno != ENOMEM;
	if (!errno)
		errno = err;
	return q;
}

/* The arena's blocks stay where they are, and are not used again. */
static void *leave_arena(void *p, size_t bytes, uint64_t *saved, long number)
{
	void *(*real)(size_t) = real_of(MT_FN_malloc);
	size_t old_bytes = mt_arena_size(p), i;
	char *q;

	q = mt_session_usable() ? real(bytes) : mt_arena_alloc(0, bytes);
	if (!q)
		return NULL;
	for (i = 0; i < old_bytes && i < bytes; i++)
		*(volatile char *)(q + i) = ((const char *)p)[i];
	record(MT_CELL_FREE, number, saved, p);
	return made(number, saved, q, bytes);
}

/* What became of p, or is still to be told of it, after its real reallocation gave q. */
struct moved {
	void *q;
	size_t bytes;
	bool freed;	  /* there is no block any more */
	uint32_t pending; /* the function whose REALLOC_BEGIN has no end yet, or 0 */
	bool told;	  /* a frame further out tells how that ends, if this one can not */
};

/* Returns the function whose REALLOC_BEGIN still has no end. */
static uint32_t record_moved(const struct moved *m, long number, uint64_t *saved)
{
	if (!m->pending) {
		made(number, saved, m->q, m->bytes);
		return 0;
	}
	if (m->q && !made_within(m->q)) {
		record_made(MT_CELL_REALLOC_END, m->pending, saved, m->q, m->bytes);
		return 0;
	}
	if (m->q || m->freed) {
		record(MT_CELL_REALLOC_END, m->pending | MT_REALLOC_FREED, saved, NULL);
		return 0;
	}
	if (m->told)
		return m->pending;
	record(MT_CELL_REALLOC_END, m->pending, saved, NULL);
	return 0;
}

static void *reallocate_real(void *p, size_t n, size_t size, size_t bytes, uint64_t *saved,
			     long number)
{
	bool begun = mt_session_decided(), nests = mt_real_nests;
	struct moved m = { .bytes = bytes, .pending = begun ? number : 0 };
	struct mt_ending outer = { 0 };

	if (nests) {
		outer = mark_ending(p, (uint64_t)saved, m.pending);
		m.told = outer.block == p;
		if (m.told)
			m.pending = mt_self.ending.pending = outer.pending;
	}
	if (begun && !m.told)
		record(MT_CELL_REALLOC_BEGIN, number, saved, p);
	m.q = move_block(p, n, size, number, &m.freed);
	if (nests) {
		/* Ended within, unless that left by a jump and took no mark away. */
		if (mt_self.ending.sp == (uint64_t)saved)
			m.pending = mt_self.ending.pending;
		mt_self.ending = outer;
	}
	if (!begun && !m.told && (m.q || m.freed))
		record(MT_CELL_FREE, number, saved, p);
	m.pending = record_moved(&m, number, saved);
	if (m.told && mt_self.ending.block == p)
		mt_self.ending.pending = m.pending;
	return m.q;
}

static void *reallocate(void *p, size_t n, size_t size, size_t bytes, uint64_t *saved, long number)
{
	bool freed = false;

	if (!p && !mt_session_usable())
		return serve_early(number, 0, bytes);
	if (mt_arena_owns(p))
		return leave_arena(p, bytes, saved, number);
	if (!p)
		return made(number, saved, move_block(p, n, size, number, &freed), bytes);
	if (!mt_session_usable())
		return NULL; /* Nobody has a block of the real ones yet. */
	return reallocate_real(p, n, size, bytes, saved, number);
}

void *mt_serve_realloc(void *p, size_t size, size_t unused, uint64_t *saved, long number)
{
	return reallocate(p, 1, size, size, saved, number);
}

void *mt_serve_reallocarray(void *p, size_t n, size_t size, uint64_t *saved, long number)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	return reallocate(p, n, size, bytes, saved, number);
}

static __attribute__((noinline)) void free_nested(void (*real)(void *, size_t, size_t), void *p,
						  size_t a, size_t b, long number)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct mt_ending outer = mark_ending(p, sp, 0);

	if (outer.block != p) {
		record(MT_CELL_FREE, number, (void *)sp, p);
	} else if (outer.pending) {
		record(MT_CELL_REALLOC_END, outer.pending | MT_REALLOC_FREED, (void *)sp, NULL);
		outer.pending = 0;
	}
	real(p, a, b);
	mt_self.ending = outer;
}

void mt_serve_free(void *p, size_t a, size_t b, long number)
{
	void (*real)(void *, size_t, size_t);

	/* Where most allocators keep what they know of a block: the clock holds its reads back. */
	__builtin_prefetch((const char *)p - sizeof(size_t), 1);
	if (p && !mt_arena_owns(p) && !mt_session_usable())
		return; /* Nobody has a block of the real ones yet. */
	/* An operator that was not looked up when its stub asked. */
	real = mt_real[number] ? mt_real[number] : mt_real[MT_FN_free];
	/* The stub jumps here. */
	mt_modules_watch_free((uint64_t)__builtin_return_address(0));
	if (p && mt_real_nests && !mt_arena_owns(p)) {
		free_nested(real, p, a, b, number);
		return;
	}
	if (p)
		record(MT_CELL_FREE, number, __builtin_frame_address(0), p);
	if (!p || mt_arena_owns(p))
		return;
	real(p, a, b);
}

/* Only operators whose object brings its own malloc come here; real.c. */
void *mt_serve_new(size_t size, size_t a, size_t b, uint64_t *saved, long number)
{
	void *(*real)(size_t, size_t, size_t);

	if (!mt_session_usable())
		return serve_early(number, 0, size);
	real = real_of(mt_real[number] ? number : MT_FN_malloc);
	return made(number, saved, real(size, a, b), size);
}
