/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wrapping_malloc.c - preloaded by the user: a malloc family of its own, which asks for the
 * next one by dlsym() when it is called first, and adds a word to each block
 *
 * What dlsym() itself wants meanwhile comes from a small array, as such libraries do.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD_BYTES 16

const size_t wrapping_malloc_head_bytes = HEAD_BYTES;

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static _Alignas(16) char reserve[4096];
static size_t reserved;
static __thread int inside;

static int is_reserve(const char *block)
{
	return block >= reserve && block < reserve + sizeof(reserve);
}

static void *from_reserve(size_t bytes)
{
	char *block = reserve + reserved;

	reserved += (bytes + HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
	return reserved <= sizeof(reserve) ? block : NULL;
}

static void find_next(void)
{
	inside = 1;
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	inside = 0;
}

static void *take(size_t bytes)
{
	char *block;

	if (inside)
		return from_reserve(bytes);
	if (!next_malloc)
		find_next();
	block = next_malloc(bytes + HEAD_BYTES);
	if (!block)
		return NULL;
	memcpy(block, &bytes, sizeof(bytes));
	return block + HEAD_BYTES;
}

static void give(char *block)
{
	if (block && !is_reserve(block))
		next_free(block - HEAD_BYTES);
}

/* Of no use, but another's that whoever preloads has to let through. */
int prctl(int option, ...)
{
	return option == -1 ? HEAD_BYTES : -1;
}

/* Time stands still, for the command and nobody else. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){ .tv_sec = 1 };
	return 0;
}

void *malloc(size_t bytes)
{
	return take(bytes);
}

void free(void *block)
{
	give(block);
}

void *calloc(size_t count, size_t bytes)
{
	size_t product;
	void *block;

	if (__builtin_mul_overflow(count, bytes, &product))
		return NULL;
	block = take(product);
	return block ? memset(block, 0, product) : NULL;
}

void *realloc(void *block, size_t bytes)
{
	size_t before;
	void *moved = take(bytes);

	if (!block || !moved)
		return moved;
	memcpy(&before, (char *)block - HEAD_BYTES, sizeof(before));
	memcpy(moved, block, before < bytes ? before : bytes);
	give(block);
	return moved;
}
