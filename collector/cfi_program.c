/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi_program.c - see cfi_program.h for the contract
 *
 * Invariants
 *   - Rules of registers that are not tracked (vectors, x87) are read and dropped; a rule
 *     of a tracked register that needs one of those is UNDEFINED.
 *   - Offsets wrap: a hostile factor gives a wrong offset, which the unwinder bounds.
 */
#include "collector/cfi_program.h"

#include <dwarf.h>
#include <errno.h>

/* gcc's for MIPS, which binutils take everywhere. */
#define CFA_ADVANCE_LOC8 0x1d

/* What DW_CFA_remember_state keeps. */
struct rules {
	struct mt_rule cfa;
	int64_t cfa_offset; /* the last one that was set, also before an expression */
	struct mt_rule regs[_MT_REG_MAX];
};

struct program {
	const struct mt_cfi_source *source;
	const struct mt_cie *cie;
	struct mt_dwarf_cursor cur;
	const struct rules *initial; /* NULL while the CIE's own run */
	uint64_t vaddr;
	uint64_t start; /* of the row that is being made */
	uint64_t end;	/* of it, once it is done */
	bool done;
	struct rules now;
	unsigned int states;
	struct rules kept[MT_CFI_STATES];
};

static void advance_to(struct program *p, uint64_t to)
{
	if (to > p->vaddr) {
		p->end = to;
		p->done = true;
		return;
	}
	p->start = to;
}

static int advance(struct program *p, uint64_t units)
{
	uint64_t delta;

	if (!p->initial)
		return -EBADMSG;
	if (__builtin_mul_overflow(units, p->cie->code_align, &delta) || p->start + delta < delta)
		return -EBADMSG;
	advance_to(p, p->start + delta);
	return 0;
}

static int set_location(struct program *p)
{
	uint64_t to;
	int r;

	if (!p->initial)
		return -EBADMSG;
	r = mt_cfi_pointer_read(&p->source->section, &p->cur, p->cie->pointer_encoding,
				p->source->got_vaddr, &to);
	if (r < 0)
		return r;
	if (to < p->start)
		return -EBADMSG;
	advance_to(p, to);
	return 0;
}

static void set_rule(struct program *p, uint64_t reg, struct mt_rule rule)
{
	if (reg < _MT_REG_MAX)
		p->now.regs[reg] = rule;
}

static void set_offset(struct program *p, uint64_t reg, enum mt_rule_kind kind, uint64_t offset)
{
	set_rule(p, reg, (struct mt_rule){ .kind = kind, .offset = (int64_t)offset });
}

static int restore(struct program *p, uint64_t reg)
{
	if (!p->initial)
		return -EBADMSG;
	if (reg < _MT_REG_MAX)
		p->now.regs[reg] = p->initial->regs[reg];
	return 0;
}

static struct mt_rule in_register(uint64_t reg, int64_t offset)
{
	if (reg >= _MT_REG_MAX)
		return (struct mt_rule){ .kind = MT_RULE_UNDEFINED };
	return (struct mt_rule){ .kind = MT_RULE_REGISTER, .reg = (uint8_t)reg, .offset = offset };
}

static int read_expression(struct program *p, enum mt_rule_kind kind, struct mt_rule *ret)
{
	uint64_t len = mt_dwarf_uleb(&p->cur);
	const uint8_t *bytes = mt_dwarf_bytes(&p->cur, len);

	if (!bytes || len > UINT32_MAX)
		return -EBADMSG;
	*ret = (struct mt_rule){
		.kind = kind,
		.expression_bytes = (uint32_t)len,
		.expression = bytes,
	};
	return 0;
}

static int set_expression(struct program *p, enum mt_rule_kind kind)
{
	uint64_t reg = mt_dwarf_uleb(&p->cur);
	struct mt_rule rule;
	int r;

	r = read_expression(p, kind, &rule);
	if (r < 0)
		return r;
	set_rule(p, reg, rule);
	return 0;
}

static void set_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	p->now.cfa = in_register(reg, offset);
	p->now.cfa_offset = offset;
}

/* As libgcc has it: where the CFA is an expression's value it remains that, but a register
 * that is named later is used with this offset.  There is assembly that relies on it. */
static void set_cfa_offset(struct program *p, int64_t offset)
{
	p->now.cfa_offset = offset;
	if (p->now.cfa.kind == MT_RULE_REGISTER)
		p->now.cfa.offset = offset;
}

static int remember(struct program *p)
{
	if (p->states == MT_CFI_STATES)
		return -EBADMSG;
	p->kept[p->states++] = p->now;
	return 0;
}

static int recall(struct program *p)
{
	if (!p->states)
		return -EBADMSG;
	p->now = p->kept[--p->states];
	return 0;
}

static uint64_t factored_uleb(struct program *p)
{
	return mt_dwarf_uleb(&p->cur) * (uint64_t)p->cie->data_align;
}

static uint64_t factored_sleb(struct program *p)
{
	return (uint64_t)mt_dwarf_sleb(&p->cur) * (uint64_t)p->cie->data_align;
}

/* The instructions that say where the CFA is. */
static int step_cfa(struct program *p, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = mt_dwarf_uleb(&p->cur);
		set_cfa(p, reg, (int64_t)mt_dwarf_uleb(&p->cur));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = mt_dwarf_uleb(&p->cur);
		set_cfa(p, reg, (int64_t)factored_sleb(p));
		return 0;
	case DW_CFA_def_cfa_register:
		set_cfa(p, mt_dwarf_uleb(&p->cur), p->now.cfa_offset);
		return 0;
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(p, (int64_t)mt_dwarf_uleb(&p->cur));
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(p, (int64_t)factored_sleb(p));
		return 0;
	case DW_CFA_def_cfa_expression:
		return read_expression(p, MT_RULE_EXPRESSION, &p->now.cfa);
	default:
		return -EBADMSG;
	}
}

/* The instructions that say where a register is. */
static int step_register(struct program *p, uint8_t op)
{
	uint64_t reg;

	if (op == DW_CFA_expression)
		return set_expression(p, MT_RULE_AT_EXPRESSION);
	if (op == DW_CFA_val_expression)
		return set_expression(p, MT_RULE_EXPRESSION);
	reg = mt_dwarf_uleb(&p->cur);
	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(p, reg, MT_RULE_AT_CFA, factored_uleb(p));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_offset(p, reg, MT_RULE_AT_CFA, factored_sleb(p));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(p, reg, MT_RULE_AT_CFA, -factored_uleb(p));
		return 0;
	case DW_CFA_val_offset:
		set_offset(p, reg, MT_RULE_CFA, factored_uleb(p));
		return 0;
	case DW_CFA_val_offset_sf:
		set_offset(p, reg, MT_RULE_CFA, factored_sleb(p));
		return 0;
	case DW_CFA_undefined:
		set_offset(p, reg, MT_RULE_UNDEFINED, 0);
		return 0;
	case DW_CFA_same_value:
		set_offset(p, reg, MT_RULE_SAME, 0);
		return 0;
	case DW_CFA_register:
		set_rule(p, reg, in_register(mt_dwarf_uleb(&p->cur), 0));
		return 0;
	case DW_CFA_restore_extended:
		return restore(p, reg);
	default:
		return -EBADMSG;
	}
}

static int step(struct program *p)
{
	uint8_t op = mt_dwarf_u8(&p->cur);
	uint8_t low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(p, low);
	case DW_CFA_offset:
		set_offset(p, low, MT_RULE_AT_CFA, factored_uleb(p));
		return 0;
	case DW_CFA_restore:
		return restore(p, low);
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_location(p);
	case DW_CFA_advance_loc1:
		return advance(p, mt_dwarf_unsigned(&p->cur, 1));
	case DW_CFA_advance_loc2:
		return advance(p, mt_dwarf_unsigned(&p->cur, 2));
	case DW_CFA_advance_loc4:
		return advance(p, mt_dwarf_unsigned(&p->cur, 4));
	case CFA_ADVANCE_LOC8:
		return advance(p, mt_dwarf_unsigned(&p->cur, 8));
	case DW_CFA_remember_state:
		return remember(p);
	case DW_CFA_restore_state:
		return recall(p);
	case DW_CFA_GNU_args_size:
		mt_dwarf_uleb(&p->cur);
		return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_expression:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_offset_sf:
		return step_cfa(p, op);
	default:
		return step_register(p, op);
	}
}

static int run(struct program *p, struct mt_dwarf_cursor instructions)
{
	unsigned int left = MT_CFI_INSTRUCTIONS;
	int r;

	p->cur = instructions;
	while (mt_dwarf_left(&p->cur) && !p->done) {
		if (!left--)
			return -EBADMSG;
		r = step(p);
		if (r < 0)
			return r;
		if (p->cur.failed)
			return -EBADMSG;
	}
	return 0;
}

int mt_cfi_program_run(const struct mt_cfi_source *source, const struct mt_cie *cie,
		       const struct mt_fde *fde, uint64_t vaddr, struct mt_cfi_row *ret)
{
	struct rules initial;
	struct program p;
	int r;

	/* Not = { }: the states have 5 KiB, and are hardly ever used. */
	p.source = source;
	p.cie = cie;
	p.initial = NULL;
	p.vaddr = vaddr;
	p.start = fde->start;
	p.end = fde->end;
	p.done = false;
	p.states = 0;
	memset(&p.now, 0, sizeof(p.now));
	p.now.cfa.kind = MT_RULE_UNDEFINED;

	r = run(&p, cie->instructions);
	if (r < 0)
		return r;
	initial = p.now;
	p.initial = &initial;
	r = run(&p, fde->instructions);
	if (r < 0)
		return r;

	ret->start = p.start;
	ret->end = p.end < fde->end ? p.end : fde->end;
	ret->cfa = p.now.cfa;
	memcpy(ret->regs, p.now.regs, sizeof(ret->regs));
	ret->signal = cie->signal;
	return 0;
}
