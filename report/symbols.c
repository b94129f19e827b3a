/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbols.c - see symbols.h
 *
 * Invariants
 *   Sorted by start; of those that start at one address the best is first, and the only one
 *   left.  reach is the greatest end so far: a search that walks back from the last start
 *   ends as soon as nothing before can contain the address.
 *   Symbols without a size (from assembly) end where the next one starts, and at the latest
 *   with their section; the last of those that were recorded, which have none, at once.
 */
#include "report/symbols.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/grow.h"

struct symbol {
	GElf_Addr start;
	GElf_Addr end;
	GElf_Addr reach;
	const char *name;
	int rank;
};

struct mt_symbols {
	struct symbol *symbols;
	size_t len, room;
};

/* Added for a symbol that has a size. */
#define RANK_SIZED 4

/* Of several names for one address, the one that a reader of the source knows. */
static int rank(unsigned int info, GElf_Xword size)
{
	unsigned int binding = GELF_ST_BIND(info);
	int ret = size ? RANK_SIZED : 0;

	if (binding == STB_GLOBAL || binding == STB_GNU_UNIQUE)
		return ret + 2;
	return binding == STB_WEAK ? ret + 1 : ret;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return y->rank - x->rank;
	if (underscores(x->name) != underscores(y->name))
		return underscores(x->name) < underscores(y->name) ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Where the symbol's section ends, moved as the symbol's value was. */
static GElf_Addr section_end(Elf *elf, GElf_Word shndx, const GElf_Sym *sym, GElf_Addr value)
{
	GElf_Shdr shdr;

	if (!gelf_getshdr(elf_getscn(elf, shndx), &shdr))
		return value;
	return shdr.sh_addr + shdr.sh_size + (value - sym->st_value);
}

static int add_symbol(struct mt_symbols *symbols, Dwfl_Module *module, int index)
{
	GElf_Word shndx;
	GElf_Addr value;
	GElf_Sym sym;
	Elf *elf;
	const char *name = dwfl_module_getsym_info(module, index, &sym, &value, &shndx, &elf, NULL);
	int type, err;

	if (!name || !name[0] || shndx == SHN_UNDEF || shndx == SHN_ABS || shndx == SHN_COMMON)
		return 0;
	type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	err = mt_grow(&symbols->symbols, &symbols->room, symbols->len + 1,
		      sizeof(*symbols->symbols));
	if (err)
		return err;
	symbols->symbols[symbols->len++] = (struct symbol){
		.start = value,
		.end = sym.st_size ? value + sym.st_size : section_end(elf, shndx, &sym, value),
		.name = name,
		.rank = rank(sym.st_info, sym.st_size),
	};
	return 0;
}

/* Sorted: one symbol an address, ends for those without a size, and reach. */
static void finish(struct mt_symbols *symbols)
{
	struct symbol *all = symbols->symbols;
	GElf_Addr reach = 0;
	size_t n = 0;

	if (symbols->len)
		qsort(all, symbols->len, sizeof(*all), by_start);
	for (size_t i = 0; i < symbols->len; i++)
		if (!n || all[n - 1].start != all[i].start)
			all[n++] = all[i];
	symbols->len = n;
	for (size_t i = 0; i < n; i++) {
		if (all[i].rank < RANK_SIZED && i + 1 < n && all[i].end > all[i + 1].start)
			all[i].end = all[i + 1].start;
		if (all[i].end > reach)
			reach = all[i].end;
		all[i].reach = reach;
	}
}

int mt_symbols_new(Dwfl_Module *module, struct mt_symbols **ret)
{
	struct mt_symbols *symbols = calloc(1, sizeof(*symbols));
	int count = dwfl_module_getsymtab(module);

	if (!symbols)
		return -ENOMEM;
	for (int i = 1; i < count; i++) {
		int err = add_symbol(symbols, module, i);

		if (err) {
			mt_symbols_free(symbols);
			return err;
		}
	}
	finish(symbols);
	*ret = symbols;
	return 0;
}

int mt_symbols_new_recorded(const struct mt_symbol *recorded, size_t len, struct mt_symbols **ret)
{
	struct mt_symbols *symbols = calloc(1, sizeof(*symbols));
	GElf_Addr last = 0;
	int err;

	if (!symbols)
		return -ENOMEM;
	err = mt_grow(&symbols->symbols, &symbols->room, len, sizeof(*symbols->symbols));
	if (err) {
		mt_symbols_free(symbols);
		return err;
	}
	for (size_t i = 0; i < len; i++)
		if (recorded[i].offset > last)
			last = recorded[i].offset;
	for (size_t i = 0; i < len; i++) {
		const struct mt_symbol *symbol = &recorded[i];
		GElf_Addr end = symbol->bytes ? symbol->offset + symbol->bytes : last;

		/* Without a name it says nothing; nor does one that ends before it starts. */
		if (!symbol->name[0] || end < symbol->offset)
			continue;
		symbols->symbols[symbols->len++] = (struct symbol){
			.start = symbol->offset,
			.end = end,
			.name = symbol->name,
			.rank = rank(symbol->info, symbol->bytes),
		};
	}
	finish(symbols);
	*ret = symbols;
	return 0;
}

void mt_symbols_free(struct mt_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->symbols);
	free(symbols);
}

const char *mt_symbols_find(const struct mt_symbols *symbols, GElf_Addr address)
{
	size_t low = 0, high = symbols->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && symbols->symbols[low].reach > address)
		if (symbols->symbols[low].end > address)
			return symbols->symbols[low].name;
	return NULL;
}

size_t mt_symbols_count(const struct mt_symbols *symbols)
{
	return symbols->len;
}
