/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * same_names_as_libc.c - what configure scripts and libraries ask of the allocator: a name
 * is found if and only if the C library has it, a function is the same for all who ask,
 * and RTLD_NEXT leads on
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30611

static const char *const names[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"reallocarray",
	"aligned_alloc",
	"memalign",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"malloc_usable_size",
	"malloc_trim",
	"malloc_info",
	"mallinfo",
	"mallinfo2",
	"mallopt",
	"malloc_stats",
	"free_sized",
	"free_aligned_sized",
	"cfree",
	"malloc_size",
	"malloc_good_size",
	"malloc_get_state",
	"malloc_set_state",
	"mcheck",
	"mtrace",
	"__malloc_hook",
	"__free_hook",
	"__libc_malloc",
	"__libc_free",
	"__libc_memalign",
	"je_malloc",
	"mallocx",
	"sdallocx",
	"nallocx",
	"tc_malloc",
	"mi_malloc",
	"xmalloc",
	"mt_self",
	"mt_session",
	"mt_capture",
	"entry",
	"init",
};

static int same_everywhere(const char *name, const void *here)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (found == here)
		return 1;
	fprintf(stderr, "%s: %p, but %p by dlsym()\n", name, here, found);
	return 0;
}

int main(void)
{
	void *library = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_NOW);
	void *(*next_malloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	void (*next_free)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	int wrong = 0;

	if (!library || !next_malloc || !next_free)
		return 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int found = !!dlsym(RTLD_DEFAULT, names[i]);

		if (found == !!dlsym(library, names[i]))
			continue;
		fprintf(stderr, "%s: %sfound\n", names[i], found ? "" : "not ");
		wrong = 4;
	}
	if (!same_everywhere("malloc", (void *)malloc) || !same_everywhere("free", (void *)free) ||
	    !same_everywhere("realloc", (void *)realloc) ||
	    !same_everywhere("calloc", (void *)calloc))
		wrong = 5;
	/* From one to the other and back. */
	free(next_malloc(BLOCK_BYTES));
	next_free(malloc(BLOCK_BYTES));
	ledger_took(NULL, NULL, BLOCK_BYTES, 2);
	ledger_gave(BLOCK_BYTES, 2);
	ledger_print();
	return wrong;
}
