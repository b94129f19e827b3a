/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol_list.c - see symbol_list.h
 */
#include "artifact/symbol_list.h"

#include <errno.h>

static int read_symbol(struct mt_unpack *at, struct mt_symbol *ret)
{
	struct mt_unpack symbol = *at;
	uint32_t n;
	char *name;

	if (mt_unpack_skip(at) < 0)
		return -EBADMSG;
	symbol.end = at->pos;
	*ret = (struct mt_symbol){ 0 };
	if (mt_unpack_array(&symbol, &n) < 0 || n < 4 ||
	    mt_unpack_uint(&symbol, &ret->offset) < 0 || mt_unpack_uint(&symbol, &ret->bytes) < 0 ||
	    mt_unpack_u32(&symbol, &ret->info) < 0 || mt_unpack_string(&symbol, &name) < 0)
		return -EBADMSG;
	ret->name = name;
	return 0;
}

int mt_symbol_list_read(struct mt_unpack *at, struct mt_symbol *list, struct mt_module_symbols *ret)
{
	struct mt_module_symbols symbols = { .symbols = list };

	if (mt_unpack_u32(at, &symbols.module) < 0 || mt_unpack_uint(at, &symbols.left_out) < 0 ||
	    mt_unpack_array(at, &symbols.len) < 0 || symbols.len > MT_SYMBOLS_LEN)
		return -EBADMSG;
	for (uint32_t i = 0; i < symbols.len; i++)
		if (read_symbol(at, &list[i]) < 0)
			return -EBADMSG;
	*ret = symbols;
	return 0;
}
