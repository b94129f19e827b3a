/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * image.h - the dynamic symbols of one loaded object
 *
 * What dlsym() can not say: whether this object, and no other, defines a name; and the C
 * library's own functions, whoever else stands in front of them.
 *
 * Contract
 *   Input:     objects that the loader has mapped and relocated; trusted as it trusts them
 *   Ownership: an image borrows the object's memory until the object is unloaded
 *   Threads:   any; those that walk the objects take the loader's list lock
 *   Bounds:    no allocation; a hash look-up
 */
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* What the linker puts at both ends of the shim. */
extern const char __ehdr_start[], _end[];

struct mt_image {
	uint64_t bias;
	const Elf64_Dyn *dynamic;
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *gnu_hash; /* or NULL */
	const uint32_t *hash;	  /* or NULL */
	const char *soname;	  /* or NULL */
	uint64_t start, end;	  /* of its loadable segments */
};

typedef int (*mt_image_look_fn)(struct dl_phdr_info *info, size_t size, void *arg);
typedef int (*mt_image_iterate_fn)(mt_image_look_fn look, void *arg);

/* The dl_iterate_phdr() to use from now on, instead of the one that the shim is bound to. */
void mt_image_iterate_by(mt_image_iterate_fn fn);

/* An object as dl_iterate_phdr() shows it; false where it has no symbol table. */
bool mt_image_object(struct mt_image *ret, const struct dl_phdr_info *info);

/* Where a pointer of its dynamic section leads. */
const void *mt_image_address(const struct mt_image *image, uint64_t ptr);

/* Does at lie in the shim itself? */
bool mt_image_is_ours(const void *at);

/* The object whose loadable segments hold at; false if there is none. */
bool mt_image_at(struct mt_image *ret, const void *at);

/*
 * The C library, found without a call, before its dl_iterate_phdr() is known; by the only
 * thread.  Where it ends is not said.
 */
bool mt_image_first_libc(struct mt_image *ret);

/* The C library of our own name space, and its loader. */
bool mt_image_libc(struct mt_image *ret);
bool mt_image_loader(struct mt_image *ret);

/*
 * The first function called name in the objects behind the shim, among the first n_objects
 * (0: all): what dlsym(RTLD_NEXT) finds where these are the ones that the program started
 * with, but without touching the message that dlerror() has for the program.  NULL: none.
 */
void *mt_image_next(const char *name, unsigned n_objects);

/* How many objects are loaded. */
unsigned mt_image_count(void);

/* A function that the image defines, or NULL: not there, or chosen by a resolver. */
void *mt_image_function(const struct mt_image *image, const char *name);

#pragma GCC visibility pop
