/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol_table.c - see symbol_table.h for the contract
 *
 * Invariants
 *   - What is taken is decided twice, to learn how much there is and to copy it, by the same
 *     function of the same bytes.
 *   - No name is looked at once something was left out: names may overlap, and a table of
 *     long ones would be read for hours.
 */
#include "collector/symbol_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/format.h"
#include "base/cleanup.h"

struct source {
	const Elf64_Sym *table;
	size_t len;
	const char *strings;
	size_t strings_len;
};

static bool is_function(const struct source *source, const Elf64_Sym *sym)
{
	unsigned char type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF &&
	       (sym->st_shndx < SHN_LORESERVE || sym->st_shndx == SHN_XINDEX) &&
	       sym->st_name < source->strings_len && source->strings[sym->st_name];
}

/* Whether there is room for one more of this name; *ret_bytes: what it takes. */
static bool has_room(const struct mt_symbol_table *table, const char *name, size_t *ret_bytes)
{
	size_t bytes;

	if (table->left_out || table->len == MT_SYMBOL_TABLE_LEN)
		return false;
	bytes = strnlen(name, MT_SYMBOL_TABLE_PIECE_BYTES) + 1;
	*ret_bytes = bytes;
	return bytes <= MT_SYMBOL_TABLE_PIECE_BYTES &&
	       bytes <= MT_SYMBOL_TABLE_NAME_BYTES - table->name_bytes;
}

/* Takes what fits; symbols and names, unless they are NULL, have room for that. */
static void take(const struct source *source, struct mt_symbol_table *ret)
{
	for (size_t i = 0; i < source->len; i++) {
		const Elf64_Sym *sym = &source->table[i];
		const char *name = source->strings + sym->st_name;
		size_t bytes;

		if (!is_function(source, sym))
			continue;
		if (!has_room(ret, name, &bytes)) {
			ret->left_out++;
			continue;
		}
		if (ret->symbols) {
			memcpy(ret->names + ret->name_bytes, name, bytes);
			ret->symbols[ret->len] = (struct mt_symbol){
				.offset = sym->st_value,
				.bytes = sym->st_size,
				.name = ret->names + ret->name_bytes,
				.info = sym->st_info,
			};
		}
		ret->name_bytes += bytes;
		ret->len++;
	}
}

int mt_symbol_table_read(const Elf64_Sym *table, size_t len, const char *strings,
			 size_t strings_len, struct mt_symbol_table *ret)
{
	const struct source source = { table, len, strings, strings_len };
	mt_cleanup(mt_freep) struct mt_symbol *symbols = NULL;
	mt_cleanup(mt_freep) char *names = NULL;
	struct mt_symbol_table found = { 0 };

	take(&source, &found);
	if (!found.len) {
		*ret = found;
		return 0;
	}
	symbols = calloc(found.len, sizeof(*symbols));
	names = malloc(found.name_bytes);
	if (!symbols || !names)
		return -ENOMEM;
	found = (struct mt_symbol_table){ .symbols = symbols, .names = names };
	take(&source, &found);
	found.symbols = mt_take_ptr(symbols);
	found.names = mt_take_ptr(names);
	*ret = found;
	return 0;
}

void mt_symbol_table_done(struct mt_symbol_table *table)
{
	free(table->symbols);
	free(table->names);
}

size_t mt_symbol_table_piece(const struct mt_symbol_table *table, size_t from,
			     struct mt_module_symbols *ret)
{
	size_t n = 0, bytes = 0;

	while (from + n < table->len && n < MT_SYMBOLS_LEN) {
		bytes += strlen(table->symbols[from + n].name) + 1;
		if (bytes > MT_SYMBOL_TABLE_PIECE_BYTES)
			break;
		n++;
	}
	*ret = (struct mt_module_symbols){
		.len = (uint32_t)n,
		.left_out = table->left_out,
		.symbols = n ? table->symbols + from : NULL,
	};
	return n;
}
