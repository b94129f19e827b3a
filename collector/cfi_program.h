/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * cfi_program.h - runs the instructions of a CIE and an FDE up to an address
 *
 * Contract
 *   Input:     entries that mt_cie_read() and mt_fde_read() gave; any instructions.
 *              fde->start <= vaddr < fde->end.
 *   Ownership: the row's expressions point into the section.
 *   Errors:    -EBADMSG: an instruction that is cut, unknown or makes no sense where it
 *              stands.  *ret is written on success only.
 *   Bounds:    MT_CFI_INSTRUCTIONS for each of the two, MT_CFI_STATES states kept.
 */
#include "collector/cfi_entry.h"

int mt_cfi_program_run(const struct mt_cfi_source *source, const struct mt_cie *cie,
		       const struct mt_fde *fde, uint64_t vaddr, struct mt_cfi_row *ret);
