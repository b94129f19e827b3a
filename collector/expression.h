/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * expression.h - the DWARF expressions that call frame information has
 *
 * Contract
 *   Input:     any bytes; a frame's registers and its window.  initial: pushed before the
 *              first operation, the CFA of a register's expression; NULL: nothing.
 *   Errors:    MT_STOP_BAD: malformed, an operation that call frame information can not
 *              have (or that needs the target's memory outside the window), a register that
 *              is not known, a word below the window; MT_STOP_TRUNCATED: a word above the
 *              window, or a register that was saved there.  *ret is written if it returns
 *              MT_STOP_NONE.
 *   Bounds:    MT_EXPRESSION_STEPS operations, MT_EXPRESSION_STACK values.
 */
#include <stddef.h>
#include <stdint.h>

#include "collector/cfi.h"
#include "collector/window.h"

#define MT_EXPRESSION_STEPS 1024
#define MT_EXPRESSION_STACK 64

struct mt_registers {
	uint64_t value[_MT_REG_MAX];
	uint32_t known; /* bit for each register whose value is */
	uint32_t above; /* of the others: those that were saved above the window */
};

static inline bool mt_register_known(const struct mt_registers *regs, unsigned int reg)
{
	return reg < _MT_REG_MAX && (regs->known >> reg & 1);
}

/* What a chain ends with if it needs a register that is not known. */
static inline enum mt_stop mt_register_missing(const struct mt_registers *regs, unsigned int reg)
{
	return reg < _MT_REG_MAX && (regs->above >> reg & 1) ? MT_STOP_TRUNCATED : MT_STOP_BAD;
}

enum mt_stop mt_expression_evaluate(const uint8_t *bytes, size_t len,
				    const struct mt_window *window, const struct mt_registers *regs,
				    const uint64_t *initial, uint64_t *ret);
