/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * real.c - see real.h
 *
 * Invariants
 *   - What the program started with is searched without dlsym(), which would allocate on
 *     failure and, in any case, throw away the message that dlerror() holds for the program.
 *   - mt_pass[] is set only to what is never unloaded: objects of the start.
 *   - An operator's next definition depends on the calling module: a C program with a C++
 *     plugin has none in the global scope, and the plugin's own runtime in the plugin's.
 *   - Where there is no next operator anywhere, new is malloc: it can not throw without a
 *     C++ runtime, and returns NULL as one built without exceptions does.
 */
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>

#include "preload/image.h"
#include "preload/session.h"
#include "preload/syscall.h"

unsigned char mt_on = 1;
void *mt_real[MT_FN_MAX];
void *mt_pass[MT_FN_MAX];
unsigned char mt_real_nests;
struct mt_libc mt_libc;
int64_t mt_clock_offset_ns;

/* How many objects the program started with: the global scope, in its order. */
static unsigned n_start;
static int (*next_dlclose)(void *handle);
static int (*next_prctl)(int option, ...);

#define NAME(number, symbol, handler) [number] = #symbol,
const char *const mt_real_names[MT_FN_MAX] = { MT_FUNCTIONS(NAME) };

bool mt_real_relocated(void)
{
	/* One word of each kind of relocation that the code of the shim depends on: the
	 * loader does an object's relocations in one go, and calls nobody between them but
	 * resolvers of functions that the shim itself uses. */
	static const char *const *volatile relative = mt_real_names;
	void *volatile symbol = (void *)dl_iterate_phdr;

	return relative == mt_real_names && symbol;
}

static void *absent(void)
{
	errno = ENOMEM;
	return NULL;
}

static void resolve_libc(void)
{
	const struct {
		const char *name;
		void *ret;
		void *seen; /* as the shim is bound to it */
	} own[] = {
		{ "clock_gettime", &mt_libc.clock_gettime, clock_gettime },
		{ "dl_iterate_phdr", &mt_libc.dl_iterate_phdr, dl_iterate_phdr },
		{ "getauxval", &mt_libc.getauxval, getauxval },
		{ "pthread_mutexattr_init", &mt_libc.mutexattr_init, pthread_mutexattr_init },
		{ "pthread_mutexattr_setrobust", &mt_libc.mutexattr_setrobust,
		  pthread_mutexattr_setrobust },
		{ "pthread_mutexattr_setpshared", &mt_libc.mutexattr_setpshared,
		  pthread_mutexattr_setpshared },
		{ "pthread_mutex_init", &mt_libc.mutex_init, pthread_mutex_init },
		{ "pthread_mutex_trylock", &mt_libc.mutex_trylock, pthread_mutex_trylock },
		{ "pthread_mutex_unlock", &mt_libc.mutex_unlock, pthread_mutex_unlock },
		{ "pthread_mutex_consistent", &mt_libc.mutex_consistent, pthread_mutex_consistent },
	};
	struct mt_image libc;
	bool found = mt_image_first_libc(&libc);
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		void *function = found ? mt_image_function(&libc, own[i].name) : NULL;

		*(void **)own[i].ret = function ? function : own[i].seen;
	}
	mt_image_iterate_by(mt_libc.dl_iterate_phdr);
}

static void look_for_others(void)
{
	struct mt_image image, libc;
	bool found = mt_image_libc(&libc);
	int number;

	for (number = MT_FN_malloc; number < MT_FN_FIRST_OPERATOR; number++)
		if (mt_real[number] && mt_real[number] != (void *)absent &&
		    (!found || !mt_image_at(&image, mt_real[number]) ||
		     image.dynamic != libc.dynamic))
			mt_real_nests = 1;
}

void mt_real_resolve(void)
{
	int number, err = errno;

	resolve_libc();
	n_start = mt_image_count();
	for (number = MT_FN_malloc; number < MT_FN_FIRST_OPERATOR; number++) {
		void *next;

		if (!mt_real_names[number])
			continue;
		next = mt_image_next(mt_real_names[number], n_start);
		if (!next && number <= MT_FN_free)
			next = dlsym(RTLD_NEXT, mt_real_names[number]); /* chosen by a resolver */
		mt_real[number] = next;
	}
	for (number = MT_FN_malloc; number < MT_FN_FIRST_OPERATOR; number++)
		if (mt_real_names[number] && !mt_real[number])
			mt_real[number] = number < MT_FN_free ? (void *)absent
							      : mt_real[MT_FN_free];
	look_for_others();
	next_dlclose = mt_image_next("dlclose", n_start);
	next_prctl = mt_image_next("prctl", n_start);
	errno = err;
}

unsigned mt_real_started(void)
{
	return n_start;
}

const void *mt_real_displaced(void)
{
	const void *first = dlsym(RTLD_DEFAULT, "malloc");
	struct mt_image image;

	if (first == (void *)mt_entry_malloc)
		return NULL;
	/* An executable at a fixed address that takes malloc's has a stub of its own for it,
	 * and the loader calls that the function; through the stub it calls ours. */
	if (mt_image_at(&image, first) && mt_image_function(&image, "malloc") != first)
		return NULL;
	return first;
}

bool mt_real_sanitizes(void)
{
	struct mt_image image;

	return mt_image_at(&image, mt_real[MT_FN_malloc]) &&
	       mt_image_function(&image, "__sanitizer_get_allocated_size");
}

int mt_real_dlclose(void *handle)
{
	if (!next_dlclose)
		next_dlclose = dlsym(RTLD_NEXT, "dlclose");
	return next_dlclose ? next_dlclose(handle) : -1;
}

int mt_real_prctl(int option, const unsigned long *a)
{
	long r;

	if (next_prctl)
		return next_prctl(option, a[0], a[1], a[2], a[3]);
	r = mt_syscall6(SYS_prctl, option, a[0], a[1], a[2], a[3], 0);
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

/*
 * Is a call of next, which was found under another name than malloc's, served by a call of
 * the interposed malloc or realloc?  The C library's reallocarray() and libstdc++'s
 * operators are; an allocator that brings its own malloc calls that by itself.
 */
static bool forwards(const void *next)
{
	struct mt_image image, libc;

	if (!mt_image_at(&image, next))
		return true;
	if (mt_image_libc(&libc) && libc.dynamic == image.dynamic)
		return true;
	return !mt_image_function(&image, "malloc");
}

/* What was found for operators in the scope of a calling module, by the place of the call. */
#define FOUND_MAX 256
static struct {
	const void *caller;
	void *target;
	uint32_t number;
	uint32_t unloads; /* the count that it was found at */
} found[FOUND_MAX];
static uint32_t n_unloads;
static int found_busy;

/* Calls of it are recorded. */
static unsigned char recorded[MT_FN_MAX];

void mt_real_forget(void)
{
	__atomic_fetch_add(&n_unloads, 1, __ATOMIC_RELAXED);
}

static void *own_aligned_new(size_t size, size_t align)
{
	return ((void *(*)(size_t, size_t))mt_entry_memalign)(align, size);
}

static void *own_operator(long number)
{
	const char *c = mt_real_names[number];

	if (c[2] == 'd')
		return mt_entry_free;
	while (*c)
		if (*c++ == 'S' && c[0] == 't' && c[1] == '1')
			return own_aligned_new;
	return mt_entry_malloc;
}

/* In the scope of the module that caller lies in: its own, and what it was linked with. */
static void *look_in_scope(long number, const void *caller)
{
	void *target = dlsym(RTLD_NEXT, mt_real_names[number]);
	void *module;
	Dl_info info;

	if (target)
		return target;
	if (dladdr(caller, &info) && info.dli_fname) {
		module = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (module) {
			target = dlsym(module, mt_real_names[number]);
			mt_real_dlclose(module);
		}
	}
	return target ? target : own_operator(number);
}

static bool found_lock(void)
{
	int unlocked = 0;

	return __atomic_compare_exchange_n(&found_busy, &unlocked, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void found_unlock(void)
{
	__atomic_store_n(&found_busy, 0, __ATOMIC_RELEASE);
}

static void *scope_target(long number, const void *caller)
{
	uint32_t unloads = __atomic_load_n(&n_unloads, __ATOMIC_RELAXED);
	size_t at = ((uintptr_t)caller * 31 + number) % FOUND_MAX;
	void *target = NULL;

	/* Who finds it locked, by another thread or by what a handler interrupted, looks
	 * by itself. */
	if (found_lock()) {
		if (found[at].caller == caller && found[at].number == number &&
		    found[at].unloads == unloads)
			target = found[at].target;
		found_unlock();
	}
	if (target)
		return target;

	target = look_in_scope(number, caller);
	if (found_lock()) {
		found[at].caller = caller;
		found[at].target = target;
		found[at].number = number;
		found[at].unloads = unloads;
		found_unlock();
	}
	return target;
}

void *mt_pass_target(long number, const void *caller)
{
	uint64_t mask;
	void *next;
	int err;

	if (!mt_session_usable() || (recorded[number] && mt_on))
		return NULL;
	/* The loader's locks can not be taken in a handler that interrupts their taking. */
	mask = mt_signals_block();
	err = errno;
	next = __atomic_load_n(&mt_real[number], __ATOMIC_RELAXED);
	if (!next) {
		next = mt_image_next(mt_real_names[number], n_start);
		__atomic_store_n(&mt_real[number], next, __ATOMIC_RELAXED);
	}
	if (!next) {
		next = scope_target(number, caller);
	} else if (!mt_on || forwards(next)) {
		__atomic_store_n(&mt_pass[number], next, __ATOMIC_RELAXED);
	} else {
		recorded[number] = 1;
		mt_real_nests = 1;
		next = NULL;
	}
	errno = err;
	mt_signals_restore(mask);
	return next;
}
