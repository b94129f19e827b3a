/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binding.c - see binding.h
 *
 * Invariants
 *   - A word that is not bound yet leads into the object itself (lazy binding), or is what
 *     the linker left: 0, or an address without the bias.
 *   - An object that defines a function of the family and calls that one is bound elsewhere.
 */
#include "preload/binding.h"

#include <elf.h>

#include "preload/entry.h"
#include "preload/real.h"

/* A table of relocations. */
struct table {
	const Elf64_Rela *rela;
	uint64_t n;
};

static bool in_family(const char *name, uint32_t *number)
{
	uint32_t i;

	for (i = 1; i < MT_FN_FIRST_OPERATOR; i++) {
		const char *a = mt_real_names[i], *b = name;

		while (a && *a && *a == *b) {
			a++;
			b++;
		}
		if (a && *a == *b) {
			*number = i;
			return true;
		}
	}
	return false;
}

static enum mt_binding binding_of_word(const struct mt_image *image, uint32_t number, uint64_t to)
{
	uint64_t own = (uint64_t)mt_image_function(image, mt_real_names[number]);

	if (own && own == to)
		return MT_BINDING_ELSEWHERE;
	if (to - image->start < image->end - image->start || to < image->end - image->start)
		return MT_BINDING_OPEN;
	return mt_image_is_ours((const void *)to) ? MT_BINDING_OURS : MT_BINDING_ELSEWHERE;
}

static enum mt_binding binding_of_table(const struct mt_image *image, const struct table *table)
{
	enum mt_binding ret = MT_BINDING_OURS;
	uint64_t i;

	for (i = 0; i < table->n; i++) {
		const Elf64_Rela *rela = &table->rela[i];
		uint32_t type = ELF64_R_TYPE(rela->r_info), number;
		enum mt_binding word;

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		if (!in_family(image->strings + image->symbols[ELF64_R_SYM(rela->r_info)].st_name,
			       &number))
			continue;
		word = binding_of_word(image, number,
				       *(const volatile uint64_t *)(image->bias + rela->r_offset));
		if (word == MT_BINDING_ELSEWHERE)
			return word;
		if (word == MT_BINDING_OPEN)
			ret = word;
	}
	return ret;
}

enum mt_binding mt_binding_of(const struct mt_image *image)
{
	struct table data = { 0 }, calls = { 0 };
	uint64_t relative = 0;
	enum mt_binding a, b;
	const Elf64_Dyn *d;

	for (d = image->dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			data.rela = mt_image_address(image, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			data.n = d->d_un.d_val / sizeof(Elf64_Rela);
		else if (d->d_tag == DT_RELACOUNT)
			relative = d->d_un.d_val;
		else if (d->d_tag == DT_JMPREL)
			calls.rela = mt_image_address(image, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			calls.n = d->d_un.d_val / sizeof(Elf64_Rela);
	}
	if (!data.rela || relative > data.n)
		data.n = relative;
	/* Those without a symbol come first. */
	data.rela += relative;
	data.n -= relative;
	if (!calls.rela)
		calls.n = 0;
	a = binding_of_table(image, &data);
	b = binding_of_table(image, &calls);
	if (a == MT_BINDING_ELSEWHERE || b == MT_BINDING_ELSEWHERE)
		return MT_BINDING_ELSEWHERE;
	return a == MT_BINDING_OPEN || b == MT_BINDING_OPEN ? MT_BINDING_OPEN : MT_BINDING_OURS;
}
