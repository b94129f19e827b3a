/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_allocator.c - the executable exports a malloc family of its own, with a lock that is
 * not recursive; also libraries must go on to be served by it
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/demand.h"

#define HEAP_BYTES (64L << 20)
#define BYTES 20063

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next, *end;
static long served;

static void *carve(size_t bytes, size_t alignment)
{
	uintptr_t at;

	pthread_mutex_lock(&lock);
	if (!next) {
		next = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		demand(next != MAP_FAILED);
		end = next + HEAP_BYTES;
	}
	at = ((uintptr_t)next + sizeof(bytes) + alignment - 1) & ~(alignment - 1);
	demand(bytes < (uintptr_t)end - at);
	memcpy((char *)at - sizeof(bytes), &bytes, sizeof(bytes));
	next = (char *)at + bytes;
	served++;
	pthread_mutex_unlock(&lock);
	return (void *)at;
}

void *malloc(size_t bytes)
{
	return carve(bytes, 16);
}

void *calloc(size_t count, size_t bytes)
{
	return carve(count * bytes, 16);
}

void free(void *block)
{
	(void)block;
}

size_t malloc_usable_size(void *block)
{
	size_t bytes;

	memcpy(&bytes, (char *)block - sizeof(bytes), sizeof(bytes));
	return bytes;
}

void *realloc(void *block, size_t bytes)
{
	void *moved = carve(bytes, 16);
	size_t before;

	if (block) {
		before = malloc_usable_size(block);
		memcpy(moved, block, before < bytes ? before : bytes);
	}
	return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return carve(bytes, alignment < 16 ? 16 : alignment);
}

static void *work(void *copy)
{
	for (int i = 0; i < 100; i++) {
		char *block = malloc(BYTES);

		memset(block, i, BYTES);
		block = realloc(block, 20);
		demand(block[19] == (char)i);
		free(block);
	}
	free(copy);
	return NULL;
}

int main(void)
{
	long before = served;
	pthread_t thread;

	work(strdup("a copy that the C library takes"));
	demand(served == before + 201);
	demand(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
	demand(served >= before + 401);
	puts("served");
	return 0;
}
