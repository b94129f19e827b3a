/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * scopes.h - which function, and which calls inlined into it, contain an address
 *
 * libdw answers that with dwarf_getscopes(), which walks a unit's DIE tree each time, and
 * finds the unit by .debug_aranges, which not all compilers write.  This is an index of the
 * units by their own ranges, and of a unit's functions when the unit is first asked for.
 *
 * Contract
 *   Input:     a Dwarf of libdw, which bounds its reads; split units (.dwo) are opened by
 *              libdw.
 *   Ownership: the Dwarf is the caller's and outlives the index.
 *   Errors:    -ENOMEM.  Debug information that can not be read is as if it was not there.
 *   Bounds:    40 bytes for each range of a function or an inlined call, of the units that
 *              were asked for, MT_SCOPES_RANGES_MAX of a unit: many may share one list.  DIEs
 *              nested deeper than MT_SCOPES_DEPTH are not seen.
 */
#include <elfutils/libdw.h>
#include <stddef.h>

#define MT_SCOPES_DEPTH 256
#define MT_SCOPES_RANGES_MAX (1u << 24)
/* Inlined calls in one address that are told. */
#define MT_SCOPES_MAX 64

struct mt_scopes;

struct mt_scope {
	Dwarf_Die die;
	int inlined; /* DW_TAG_inlined_subroutine; else DW_TAG_subprogram */
};

int mt_scopes_new(Dwarf *dwarf, struct mt_scopes **ret);
void mt_scopes_free(struct mt_scopes *scopes);

/*
 * ret[0] is the innermost, each next one what it was inlined into; the last one is the
 * function, unless there are more than MT_SCOPES_MAX.  ret_unit is the unit with the line
 * table.  Returns how many; 0: only the unit is known; -ENOENT: not even that.
 */
int mt_scopes_find(struct mt_scopes *scopes, Dwarf_Addr address, Dwarf_Die *ret_unit,
		   struct mt_scope ret[MT_SCOPES_MAX]);
