/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loader_lock.c - see loader_lock.h
 *
 * Invariants
 *   - The lock is the one recursive mutex in the loader's data that this thread has inside a
 *     call-back of dl_iterate_phdr() and nobody has outside.  Where it lies is no interface,
 *     but that is: what does not look so is not taken for it, and looks may then wait.
 *   - It is locked as dl_iterate_phdr() locks it, by the C library's own functions.
 *   - A thread that was not lucky tells nothing wrong: the list is sent with a later event.
 */
#include "preload/loader_lock.h"

#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/image.h"
#include "preload/real.h"
#include "preload/syscall.h"

/* Of a pause of some 40 to 140 cycles each. */
#define TRIES 20000

#define CANDIDATES_MAX 4

struct candidates {
	struct mt_image loader;
	int tid;
	pthread_mutex_t *mutexes[CANDIDATES_MAX];
	size_t n;
};

static pthread_mutex_t *loader_lock;

static bool is_held_once(const pthread_mutex_t *mutex, int tid)
{
	return (mutex->__data.__lock == 1 || mutex->__data.__lock == 2) &&
	       mutex->__data.__count == 1 && mutex->__data.__owner == tid &&
	       mutex->__data.__nusers == 1 && mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE;
}

static void search(struct candidates *found, uint64_t at, uint64_t end)
{
	for (; at + sizeof(pthread_mutex_t) <= end; at += _Alignof(pthread_mutex_t)) {
		pthread_mutex_t *mutex = (pthread_mutex_t *)at;

		if (is_held_once(mutex, found->tid) && found->n < CANDIDATES_MAX)
			found->mutexes[found->n++] = mutex;
	}
}

static int look_in_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct candidates *found = arg;
	int i;

	if (info->dlpi_addr != found->loader.bias)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_W)
			search(found, at + (-at & (_Alignof(pthread_mutex_t) - 1)),
			       at + ph->p_memsz);
	}
	return 1;
}

void mt_loader_lock_find(void)
{
	struct candidates found = { .tid = (int)mt_syscall3(SYS_gettid, 0, 0, 0) };
	pthread_mutex_t *mutex = NULL;
	size_t i, n = 0;

	if (loader_lock || !mt_image_loader(&found.loader))
		return;
	mt_libc.dl_iterate_phdr(look_in_loader, &found);
	for (i = 0; i < found.n; i++) {
		if (is_held_once(found.mutexes[i], found.tid))
			continue;
		mutex = found.mutexes[i];
		n++;
	}
	if (n == 1)
		__atomic_store_n(&loader_lock, mutex, __ATOMIC_RELEASE);
}

bool mt_loader_lock(void)
{
	pthread_mutex_t *mutex = __atomic_load_n(&loader_lock, __ATOMIC_ACQUIRE);
	int i;

	if (!mutex)
		return true;
	for (i = 0; i < TRIES; i++) {
		if (!mt_libc.mutex_trylock(mutex))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

void mt_loader_unlock(void)
{
	pthread_mutex_t *mutex = __atomic_load_n(&loader_lock, __ATOMIC_ACQUIRE);

	if (mutex)
		mt_libc.mutex_unlock(mutex);
}

bool mt_loader_lock_survived(bool threaded)
{
	if (!__atomic_load_n(&loader_lock, __ATOMIC_ACQUIRE))
		return !threaded;
	if (!mt_loader_lock())
		return false;
	mt_loader_unlock();
	return true;
}
