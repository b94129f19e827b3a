/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * image.c - see image.h
 *
 * Invariants
 *   - No function of the C library but dl_iterate_phdr() is called: memcmp() and its like
 *     may be interposed, and may be ifuncs.
 *   - d_ptr of a dynamic entry is relocated by glibc, except in the vDSO: an address below
 *     the bias is taken as relative to it.
 */
#include "preload/image.h"

#include <link.h>

#include "preload/glibc.h"

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

const void *mt_image_address(const struct mt_image *image, uint64_t ptr)
{
	return (const void *)(ptr < image->bias ? image->bias + ptr : ptr);
}

static bool read_dynamic(struct mt_image *ret, uint64_t bias, const Elf64_Dyn *dynamic)
{
	struct mt_image image = { .bias = bias, .dynamic = dynamic };
	uint64_t soname = 0;
	const Elf64_Dyn *d;

	for (d = dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			image.symbols = mt_image_address(&image, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			image.strings = mt_image_address(&image, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			image.gnu_hash = mt_image_address(&image, d->d_un.d_ptr);
		else if (d->d_tag == DT_HASH)
			image.hash = mt_image_address(&image, d->d_un.d_ptr);
		else if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
	}
	if (!image.symbols || !image.strings)
		return false;
	if (soname)
		image.soname = image.strings + soname;
	*ret = image;
	return true;
}

static bool segments_hold(const struct dl_phdr_info *info, const void *at)
{
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD &&
		    (uint64_t)at - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return true;
	}
	return false;
}

bool mt_image_object(struct mt_image *ret, const struct dl_phdr_info *info)
{
	const Elf64_Dyn *dynamic = NULL;
	uint64_t start = ~0ULL, end = 0;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)at;
		if (ph->p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + ph->p_memsz > end ? at + ph->p_memsz : end;
	}
	if (!dynamic || !read_dynamic(ret, info->dlpi_addr, dynamic))
		return false;
	ret->start = start;
	ret->end = end;
	return true;
}

/*
 * The C library's own, once that is known: another's, as a sanitizer's, may not bear calls
 * before it is done with its own beginnings.
 */
static mt_image_iterate_fn own_iterate;

void mt_image_iterate_by(mt_image_iterate_fn fn)
{
	own_iterate = fn;
}

static void iterate(mt_image_look_fn look, void *arg)
{
	if (own_iterate)
		own_iterate(look, arg);
	else
		dl_iterate_phdr(look, arg);
}

bool mt_image_is_ours(const void *at)
{
	/* The first and last byte of what the linker laid out. */
	return at >= (const void *)__ehdr_start && at < (const void *)_end;
}

/* The object that holds at or, where at is NULL, whose name begins so. */
struct search {
	const void *at;
	const char *soname;
	struct mt_image *ret;
	bool found;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	struct mt_image image;

	if (search->at && !segments_hold(info, search->at))
		return 0;
	if (!mt_image_object(&image, info))
		return 0;
	if (!search->at && !(image.soname && begins(image.soname, search->soname)))
		return 0;
	*search->ret = image;
	search->found = true;
	return 1;
}

bool mt_image_at(struct mt_image *ret, const void *at)
{
	struct search search = { .at = at, .ret = ret };

	iterate(look, &search);
	return search.found;
}

bool mt_image_first_libc(struct mt_image *ret)
{
	const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;

	for (; map; map = map->l_next)
		if (map->l_ld && read_dynamic(ret, map->l_addr, map->l_ld) && ret->soname &&
		    begins(ret->soname, "libc.so.6"))
			return true;
	return mt_image_libc(ret);
}

bool mt_image_libc(struct mt_image *ret)
{
	struct search search = { .soname = "libc.so.6", .ret = ret };

	iterate(look, &search);
	return search.found;
}

bool mt_image_loader(struct mt_image *ret)
{
	struct search search = { .soname = "ld-linux", .ret = ret };

	iterate(look, &search);
	return search.found;
}

static void *defined(const struct mt_image *image, uint32_t index, const char *name)
{
	const Elf64_Sym *symbol = &image->symbols[index];

	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    !same(image->strings + symbol->st_name, name))
		return NULL;
	return (void *)(image->bias + symbol->st_value);
}

static void *find_gnu(const struct mt_image *image, const char *name)
{
	const uint32_t *table = image->gnu_hash;
	uint32_t n_buckets = table[0], first = table[1], bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * 2;
	const uint32_t *chains = buckets + n_buckets;
	uint32_t hash = 5381, index;
	const char *c;

	for (c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	index = n_buckets ? buckets[hash % n_buckets] : 0;
	if (index < first || !index)
		return NULL;
	for (;; index++) {
		uint32_t chain = chains[index - first];
		void *found;

		if ((chain | 1) == (hash | 1)) {
			found = defined(image, index, name);
			if (found)
				return found;
		}
		if (chain & 1)
			return NULL;
	}
}

static void *find_sysv(const struct mt_image *image, const char *name)
{
	uint32_t n_symbols = image->hash[1], i;

	/* Rare and old: all symbols, without the hash. */
	for (i = 1; i < n_symbols; i++) {
		void *found = defined(image, i, name);

		if (found)
			return found;
	}
	return NULL;
}

void *mt_image_function(const struct mt_image *image, const char *name)
{
	if (image->gnu_hash)
		return find_gnu(image, name);
	if (image->hash)
		return find_sysv(image, name);
	return NULL;
}

struct next_search {
	const char *name;
	unsigned n_objects, seen;
	bool behind_us;
	void *found;
};

static int look_next(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct next_search *search = arg;
	struct mt_image image;

	if (search->n_objects && search->seen >= search->n_objects)
		return 1;
	search->seen++;
	if (!search->behind_us)
		search->behind_us = segments_hold(info, (const void *)look_next);
	else if (mt_image_object(&image, info))
		search->found = mt_image_function(&image, search->name);
	return search->found != NULL;
}

void *mt_image_next(const char *name, unsigned n_objects)
{
	struct next_search search = { .name = name, .n_objects = n_objects };

	iterate(look_next, &search);
	return search.found;
}

static int count(struct dl_phdr_info *info, size_t size, void *arg)
{
	++*(unsigned *)arg;
	return 0;
}

unsigned mt_image_count(void)
{
	unsigned n = 0;

	iterate(count, &n);
	return n;
}
