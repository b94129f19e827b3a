/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * self_calling_malloc.c - preloaded by the user: a malloc family whose functions call one
 * another by name, so whoever stands in front of it
 *
 * Two words lie in front of a block: its size, and how far below it the next family's block
 * begins.  While leave is set, realloc() jumps there instead of what it should do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 16

jmp_buf *self_calling_malloc_leave;

static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		abort();
	return function;
}

static size_t *head_of(void *block)
{
	return (size_t *)block - 2;
}

static void *with_head(char *base, size_t head_bytes, size_t bytes)
{
	if (!base)
		return NULL;
	head_of(base + head_bytes)[0] = bytes;
	head_of(base + head_bytes)[1] = head_bytes;
	return base + head_bytes;
}

void *malloc(size_t bytes)
{
	static void *(*next_malloc)(size_t);

	if (!next_malloc)
		next_malloc = (void *(*)(size_t))next("malloc");
	if (bytes > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	return with_head(next_malloc(bytes + HEAD_BYTES), HEAD_BYTES, bytes);
}

void free(void *block)
{
	static void (*next_free)(void *);

	if (!next_free)
		next_free = (void (*)(void *))next("free");
	if (block)
		next_free((char *)block - head_of(block)[1]);
}

void *memalign(size_t align, size_t bytes)
{
	static void *(*next_memalign)(size_t, size_t);

	if (!next_memalign)
		next_memalign = (void *(*)(size_t, size_t))next("memalign");
	if (align < HEAD_BYTES)
		align = HEAD_BYTES;
	return with_head(next_memalign(align, align + bytes), align, bytes);
}

void *calloc(size_t count, size_t bytes)
{
	size_t product;
	void *block;

	if (__builtin_mul_overflow(count, bytes, &product))
		return NULL;
	block = malloc(product);
	return block ? memset(block, 0, product) : NULL;
}

void *realloc(void *block, size_t bytes)
{
	void *moved;

	if (self_calling_malloc_leave)
		longjmp(*self_calling_malloc_leave, 1);
	moved = malloc(bytes);
	if (!block || !moved)
		return moved;
	memcpy(moved, block, head_of(block)[0] < bytes ? head_of(block)[0] : bytes);
	free(block);
	return moved;
}

void *reallocarray(void *block, size_t count, size_t bytes)
{
	size_t product;

	if (__builtin_mul_overflow(count, bytes, &product))
		return NULL;
	return realloc(block, product);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

int posix_memalign(void **ret, size_t align, size_t bytes)
{
	void *block = aligned_alloc(align, bytes);

	if (block)
		*ret = block;
	return block ? 0 : ENOMEM;
}

/* operator new and delete */
void *_Znwm(size_t bytes)
{
	return malloc(bytes);
}

void _ZdlPv(void *block)
{
	free(block);
}
