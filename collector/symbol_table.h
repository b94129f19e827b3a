/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * symbol_table.h - an ELF symbol table in, the functions that a recording has of it out
 *
 * Functions are the symbols of type FUNC and GNU_IFUNC that are in a section and have a name.
 *
 * Contract
 *   Input:     a table and its strings, of any content; strings end in a NUL that does not count
 *              in strings_len.
 *   Ownership: all is copied; mt_symbol_table_done() frees, and takes what is zero.  A piece
 *              borrows from the table.
 *   Errors:    -ENOMEM: *ret is as it was.
 *   Bounds:    MT_SYMBOL_TABLE_LEN functions, MT_SYMBOL_TABLE_NAME_BYTES of names.  The first
 *              that is beyond, or has a name that no piece has room for, is left out with all
 *              that follow: so the time is that of the bytes kept and of the table.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define MT_SYMBOL_TABLE_LEN 20000
#define MT_SYMBOL_TABLE_NAME_BYTES (1024 * 1024)
/* Names of a piece, with their NULs: with the rest of it they have room in a batch. */
#define MT_SYMBOL_TABLE_PIECE_BYTES (64 * 1024)

struct mt_module_symbols;
struct mt_symbol;

struct mt_symbol_table {
	struct mt_symbol *symbols;
	size_t len;
	char *names;
	size_t name_bytes;
	uint64_t left_out;
};

int mt_symbol_table_read(const Elf64_Sym *table, size_t len, const char *strings,
			 size_t strings_len, struct mt_symbol_table *ret);
void mt_symbol_table_done(struct mt_symbol_table *table);

/* A record of the functions from there on, as many as one has room for, at least one if there
 * is one; what is left out is told.  Returns how many. */
size_t mt_symbol_table_piece(const struct mt_symbol_table *table, size_t from,
			     struct mt_module_symbols *ret);
