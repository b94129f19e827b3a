/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arena.c - see arena.h
 *
 * Invariants
 *   - A block's size lies in front of it as glibc keeps that of a block that it has mapped,
 *     so that malloc_usable_size() of one is right.
 *   - used and next only grow: a signal handler or another thread may come between.
 */
#include "preload/arena.h"

#include "preload/syscall.h"

#define HEADER_BYTES 16
#define FLAG_BITS 7UL
#define IS_MMAPPED 2UL
/* How often a writer that is late is waited for. */
#define YIELDS_MAX 1000
#define CLOSED (1u << 31)

char mt_arena_memory[MT_ARENA_BYTES] __attribute__((aligned(4096)));
static size_t used;

static struct mt_arena_event events[MT_ARENA_EVENTS];
static unsigned next;

void *mt_arena_alloc(size_t align, size_t size)
{
	size_t at = __atomic_load_n(&used, __ATOMIC_RELAXED), start;
	uintptr_t from = (uintptr_t)mt_arena_memory + HEADER_BYTES;

	if (align < HEADER_BYTES)
		align = HEADER_BYTES;
	if (size > MT_ARENA_BYTES || align > MT_ARENA_BYTES)
		return NULL;
	/* A block of nothing has a place, too, and not the one behind the arena. */
	size = (size + !size + FLAG_BITS) & ~FLAG_BITS;
	do {
		/* Of the address: the arena itself is aligned to a page only. */
		start = at + HEADER_BYTES + (-(from + at) & (align - 1));
		if (start + size > MT_ARENA_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&used, &at, start + size, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*(size_t *)(mt_arena_memory + start - 8) = (size + HEADER_BYTES) | IS_MMAPPED;
	return mt_arena_memory + start;
}

size_t mt_arena_size(const void *p)
{
	return (*((const size_t *)p - 1) & ~FLAG_BITS) - HEADER_BYTES;
}

bool mt_arena_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED) != 0;
}

bool mt_arena_note(uint8_t type, uint8_t kind, const void *address, size_t size)
{
	unsigned i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);

	if (i >= CLOSED)
		return false;
	if (i < MT_ARENA_EVENTS) {
		events[i].address = (uint64_t)address;
		events[i].size = size;
		events[i].kind = kind;
		__atomic_store_n(&events[i].type, type, __ATOMIC_RELEASE);
	}
	return true;
}

unsigned mt_arena_take(const struct mt_arena_event **ret, uint64_t *ret_lost)
{
	unsigned n = __atomic_exchange_n(&next, CLOSED, __ATOMIC_ACQ_REL), i;
	unsigned yields = 0;

	*ret_lost = n > MT_ARENA_EVENTS ? n - MT_ARENA_EVENTS : 0;
	n -= *ret_lost;
	for (i = 0; i < n; i++) {
		/* Another thread, or what a handler interrupted, is at this very one. */
		while (!__atomic_load_n(&events[i].type, __ATOMIC_ACQUIRE) && yields < YIELDS_MAX) {
			mt_syscall3(SYS_sched_yield, 0, 0, 0);
			yields++;
		}
		if (!__atomic_load_n(&events[i].type, __ATOMIC_ACQUIRE))
			++*ret_lost;
	}
	*ret = events;
	return n;
}
