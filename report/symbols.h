/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * symbols.h - which symbol of a module contains an address
 *
 * libdwfl answers that too, but looks at every symbol for each address: milliseconds, in
 * large libraries.  This is an index, built once: microseconds.
 *
 * Contract
 *   Input:     a module of libdwfl, which reads its symbol tables: .symtab, .dynsym,
 *              MiniDebugInfo, and those of its debug file.  Or symbols as an artifact has them:
 *              of any content.
 *   Ownership: names are the module's, or those of the symbols given; the index is to be freed
 *              before they end.
 *   Errors:    -ENOMEM.  A module without symbols is an empty index.
 *   Bounds:    40 bytes a symbol.
 */
#include <elfutils/libdwfl.h>
#include <stddef.h>

#include "artifact/format.h"

struct mt_symbols;

int mt_symbols_new(Dwfl_Module *module, struct mt_symbols **ret);
int mt_symbols_new_recorded(const struct mt_symbol *recorded, size_t len, struct mt_symbols **ret);
void mt_symbols_free(struct mt_symbols *symbols);

/* The innermost symbol that contains the address, as the linker names it, or NULL. */
const char *mt_symbols_find(const struct mt_symbols *symbols, GElf_Addr address);

size_t mt_symbols_count(const struct mt_symbols *symbols);
