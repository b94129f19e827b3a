/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * cfi_entry.h - the entries of .eh_frame and .debug_frame: CIE and FDE
 *
 * Contract
 *   Input:     a section of any bytes and an offset in it, which may be anything.
 *   Ownership: what is returned points into the section.
 *   Errors:    -EBADMSG: not an entry, cut, or of a kind that is not known here;
 *              -ENOENT (mt_cfi_entry_read only): the end of the section or its terminator.
 *   Bounds:    an entry's head is read in constant time, whatever it says: an augmentation
 *              has MT_CFI_AUGMENTATION characters at most.
 */
#include "collector/cfi.h"
#include "collector/dwarf_cursor.h"

#define MT_CFI_AUGMENTATION 8

/* A section, and how its entries are to be read. */
struct mt_cfi_source {
	struct mt_cfi_section section;
	bool is_debug_frame;
	uint64_t got_vaddr;
};

struct mt_cfi_raw_entry {
	size_t offset, next; /* of the entry, of the one behind it */
	bool is_cie;
	size_t cie;		     /* of an FDE: its CIE's offset */
	struct mt_dwarf_cursor rest; /* what follows the CIE pointer */
};

struct mt_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding; /* DW_EH_PE_* of an FDE's addresses */
	bool has_length;	  /* FDEs have augmentation data */
	bool signal;
	struct mt_dwarf_cursor instructions;
};

struct mt_fde {
	uint64_t start, end; /* addresses that it is about */
	struct mt_dwarf_cursor instructions;
};

/* The head that both kinds have. */
int mt_cfi_entry_read(const struct mt_cfi_source *source, size_t offset,
		      struct mt_cfi_raw_entry *ret);

int mt_cie_read(const struct mt_cfi_source *source, size_t offset, struct mt_cie *ret);

/* entry: an FDE; cie: its CIE. */
int mt_fde_read(const struct mt_cfi_source *source, const struct mt_cfi_raw_entry *entry,
		const struct mt_cie *cie, struct mt_fde *ret);

/*
 * A pointer in one of the encodings DW_EH_PE_*.  base: what data-relative ones are relative
 * to, 0 if that is not known.  Refused: text- and function-relative, and indirect ones,
 * whose value is in the target's memory only.
 */
int mt_cfi_pointer_read(const struct mt_cfi_section *section, struct mt_dwarf_cursor *cur,
			uint8_t encoding, uint64_t base, uint64_t *ret);
