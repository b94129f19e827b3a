/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * count_preload.c - a preloaded counter of allocations by size, an oracle for tests
 *
 * Shares no code and no idea with memtrack: it forwards to glibc's own second names of the
 * allocator, counts under the size asked for, and finds the size of a freed block in a
 * table by address.  COUNT_FILE names a file of COUNT_ROWS zeroed struct count_row, into
 * which all processes of a tree count; integration/counted.py makes and reads it.
 *
 * Invariants
 *   Rows of both tables are claimed by compare-and-swap and never given up: no lock that a
 *   fork, a signal handler or a kill could leave held.
 *   A block is in the address table from before its address is returned until before it is
 *   given back, so that no two threads handle one address at once.
 *   Counts before the constructor, when there is no environment yet, go to a table of the
 *   process, and are moved then.
 *
 * A realloc is a free and an allocation.  Frees of what it does not know are not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT_ROWS 65536
#define ADDRESS_ROWS (1U << 23)

struct count_row {
	uint64_t size_plus_1; /* 0: free */
	uint64_t allocations;
	uint64_t frees;
};

struct address_row {
	uintptr_t address;  /* 0: free; kept when the block is given back */
	size_t size_plus_1; /* 0: given back */
};

/* glibc's own, behind its exported functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *block);

static struct count_row early[COUNT_ROWS];
static struct count_row *counts = early;
static struct address_row *addresses;

/* A thread-local variable, as memtrack's shim has: the size of glibc's tables of
 * thread-local storage follows the number of objects that have one. */
static __thread volatile int of_this_thread __attribute__((tls_model("initial-exec")));

static struct count_row *find_count(size_t size)
{
	uint64_t name = (uint64_t)size + 1;
	size_t at = name * 0x9e3779b97f4a7c15UL >> 48;

	for (;; at = (at + 1) % COUNT_ROWS) {
		uint64_t found = __atomic_load_n(&counts[at].size_plus_1, __ATOMIC_RELAXED);

		if (!found && __atomic_compare_exchange_n(&counts[at].size_plus_1, &found, name, 0,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &counts[at];
		if (found == name)
			return &counts[at];
	}
}

static struct address_row *map_addresses(void)
{
	struct address_row *expected = NULL, *table;
	int saved_errno = errno;

	table = mmap(NULL, ADDRESS_ROWS * sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		abort();
	if (!__atomic_compare_exchange_n(&addresses, &expected, table, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		munmap(table, ADDRESS_ROWS * sizeof(*table));
		table = expected;
	}
	errno = saved_errno;
	return table;
}

static struct address_row *find_address(uintptr_t address, int insert)
{
	struct address_row *table = __atomic_load_n(&addresses, __ATOMIC_ACQUIRE);
	size_t at = (address >> 4) * 0x9e3779b97f4a7c15UL >> 41;

	if (!table)
		table = map_addresses();
	for (;; at = (at + 1) % ADDRESS_ROWS) {
		uintptr_t found = __atomic_load_n(&table[at].address, __ATOMIC_RELAXED);

		if (!found && !insert)
			return NULL;
		if (!found && __atomic_compare_exchange_n(&table[at].address, &found, address, 0,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &table[at];
		if (found == address)
			return &table[at];
	}
}

static void *took(void *block, size_t size)
{
	if (block) {
		find_address((uintptr_t)block, 1)->size_plus_1 = size + 1;
		__atomic_fetch_add(&find_count(size)->allocations, 1, __ATOMIC_RELAXED);
	}
	return block;
}

/* The block's size + 1, or 0: not known. */
static size_t forget(void *block)
{
	struct address_row *row = block ? find_address((uintptr_t)block, 0) : NULL;
	size_t ret = row ? row->size_plus_1 : 0;

	if (row)
		row->size_plus_1 = 0;
	return ret;
}

static void gave(size_t size_plus_1)
{
	if (size_plus_1)
		__atomic_fetch_add(&find_count(size_plus_1 - 1)->frees, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	return took(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
	return took(__libc_calloc(count, size), count * size);
}

void free(void *block)
{
	gave(forget(block));
	__libc_free(block);
}

void *realloc(void *block, size_t size)
{
	size_t old = forget(block);
	void *ret = __libc_realloc(block, size);

	if (ret || (block && !size)) {
		gave(old);
		return took(ret, size);
	}
	if (old)
		find_address((uintptr_t)block, 1)->size_plus_1 = old;
	return NULL;
}

void *reallocarray(void *block, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, count * size);
}

void *memalign(size_t alignment, size_t size)
{
	return took(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	int saved_errno = errno;
	void *block;

	if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	block = memalign(alignment, size);
	errno = saved_errno;
	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

void *valloc(size_t size)
{
	return took(__libc_valloc(size), size);
}

void *pvalloc(size_t size)
{
	return took(__libc_pvalloc(size), size);
}

__attribute__((constructor(101))) static void join_others(void)
{
	const char *path = getenv("COUNT_FILE");
	struct count_row *shared;
	int fd;

	of_this_thread = 1;
	if (!path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	shared = mmap(NULL, sizeof(early), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		abort();
	close(fd);
	counts = shared;
	for (size_t i = 0; i < COUNT_ROWS; i++) {
		struct count_row *row;

		if (!early[i].size_plus_1)
			continue;
		row = find_count(early[i].size_plus_1 - 1);
		__atomic_fetch_add(&row->allocations, early[i].allocations, __ATOMIC_RELAXED);
		__atomic_fetch_add(&row->frees, early[i].frees, __ATOMIC_RELAXED);
	}
}
