/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * symbol_list.h - a record of symbols, behind its kind, as a struct
 *
 * Contract
 *   Input:     any bytes; list has room for MT_SYMBOLS_LEN.
 *   Ownership: *ret has list, and names that point into the input, as artifact/unpack.h has it.
 *   Errors:    -EBADMSG: it is none, or has more symbols than that.
 */
#include "artifact/format.h"
#include "artifact/unpack.h"

int mt_symbol_list_read(struct mt_unpack *at, struct mt_symbol *list,
			struct mt_module_symbols *ret);
