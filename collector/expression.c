/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * expression.c - see expression.h for the contract
 *
 * Invariants
 *   - The first thing that goes wrong is kept in stop, pushes and pops go on harmlessly
 *     after it: pop() of an empty stack gives 0, push() on a full one drops.
 */
#include "collector/expression.h"

#include <dwarf.h>

#include "collector/dwarf_cursor.h"

struct machine {
	struct mt_dwarf_cursor cur;
	const uint8_t *start;
	const struct mt_window *window;
	const struct mt_registers *regs;
	enum mt_stop stop;
	unsigned int depth;
	uint64_t stack[MT_EXPRESSION_STACK];
};

static void fail(struct machine *m, enum mt_stop stop)
{
	if (m->stop == MT_STOP_NONE)
		m->stop = stop;
}

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == MT_EXPRESSION_STACK)
		fail(m, MT_STOP_BAD);
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		fail(m, MT_STOP_BAD);
		return 0;
	}
	return m->stack[--m->depth];
}

/* The value that is i below the top. */
static uint64_t peek(struct machine *m, unsigned int i)
{
	if (i >= m->depth) {
		fail(m, MT_STOP_BAD);
		return 0;
	}
	return m->stack[m->depth - 1 - i];
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= _MT_REG_MAX || !mt_register_known(m->regs, (unsigned int)reg)) {
		fail(m, reg < _MT_REG_MAX ? mt_register_missing(m->regs, (unsigned int)reg)
					  : MT_STOP_BAD);
		return;
	}
	push(m, m->regs->value[reg] + (uint64_t)offset);
}

/* width: of a value that does not cross the bounds of a word */
static void dereference(struct machine *m, unsigned int width)
{
	uint64_t address = pop(m), word;
	unsigned int unused = 64 - 8 * width;

	if (m->stop != MT_STOP_NONE)
		return;
	if ((width != 1 && width != 2 && width != 4 && width != 8) || address % width)
		fail(m, MT_STOP_BAD);
	else if (!mt_window_read(m->window, address & ~7ULL, &word))
		fail(m, mt_window_missing(m->window, address & ~7ULL));
	else
		push(m, word >> 8 * (address & 7) << unused >> unused);
}

static void jump(struct machine *m, bool taken)
{
	int64_t distance = mt_dwarf_signed(&m->cur, 2);

	if (m->cur.failed || !taken)
		return;
	if (distance < m->start - m->cur.pos || distance > m->cur.end - m->cur.pos)
		fail(m, MT_STOP_BAD);
	else
		m->cur.pos += distance;
}

static uint64_t compare(uint8_t op, int64_t a, int64_t b)
{
	switch (op) {
	case DW_OP_eq:
		return a == b;
	case DW_OP_ge:
		return a >= b;
	case DW_OP_gt:
		return a > b;
	case DW_OP_le:
		return a <= b;
	case DW_OP_lt:
		return a < b;
	default:
		return a != b;
	}
}

/* b: the value that was on top; a shift by the width or more moves everything out. */
static uint64_t shift(uint8_t op, uint64_t a, uint64_t b)
{
	if (op == DW_OP_shra)
		return (uint64_t)((int64_t)a >> (b > 63 ? 63 : b));
	if (b > 63)
		return 0;
	return op == DW_OP_shl ? a << b : a >> b;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b) {
		fail(m, MT_STOP_BAD);
		return 0;
	}
	/* The one quotient that does not fit, INT64_MIN / -1, wraps. */
	return b == ~0ULL ? -a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b) {
		fail(m, MT_STOP_BAD);
		return 0;
	}
	return a % b;
}

/* Operations on two values. */
static void step_binary(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m);

	switch (op) {
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_or:
		push(m, a | b);
		break;
	case DW_OP_xor:
		push(m, a ^ b);
		break;
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_div:
		push(m, divide(m, a, b));
		break;
	case DW_OP_mod:
		push(m, remainder_of(m, a, b));
		break;
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
		push(m, shift(op, a, b));
		break;
	case DW_OP_eq:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
	case DW_OP_ne:
		push(m, compare(op, (int64_t)a, (int64_t)b));
		break;
	default:
		fail(m, MT_STOP_BAD);
		break;
	}
}

/* Operations on one value, and those that move values about. */
static void step_stack(struct machine *m, uint8_t op)
{
	uint64_t a, b, c;

	switch (op) {
	case DW_OP_dup:
		push(m, peek(m, 0));
		break;
	case DW_OP_over:
		push(m, peek(m, 1));
		break;
	case DW_OP_pick:
		push(m, peek(m, mt_dwarf_u8(&m->cur)));
		break;
	case DW_OP_drop:
		pop(m);
		break;
	case DW_OP_swap:
		b = pop(m);
		a = pop(m);
		push(m, b);
		push(m, a);
		break;
	case DW_OP_rot:
		c = pop(m);
		b = pop(m);
		a = pop(m);
		push(m, c);
		push(m, a);
		push(m, b);
		break;
	case DW_OP_abs:
		a = pop(m);
		push(m, (int64_t)a < 0 ? -a : a);
		break;
	case DW_OP_neg:
		push(m, -pop(m));
		break;
	case DW_OP_not:
		push(m, ~pop(m));
		break;
	case DW_OP_plus_uconst:
		a = pop(m);
		push(m, a + mt_dwarf_uleb(&m->cur));
		break;
	default:
		step_binary(m, op);
		break;
	}
}

static void step(struct machine *m)
{
	struct mt_dwarf_cursor *cur = &m->cur;
	uint8_t op = mt_dwarf_u8(cur);
	uint64_t reg;

	switch (op) {
	case DW_OP_lit0 ... DW_OP_lit31:
		push(m, op - DW_OP_lit0);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(m, op - DW_OP_breg0, mt_dwarf_sleb(cur));
		break;
	case DW_OP_bregx:
		reg = mt_dwarf_uleb(cur);
		push_register(m, reg, mt_dwarf_sleb(cur));
		break;
	case DW_OP_const1u:
		push(m, mt_dwarf_unsigned(cur, 1));
		break;
	case DW_OP_const1s:
		push(m, (uint64_t)mt_dwarf_signed(cur, 1));
		break;
	case DW_OP_const2u:
		push(m, mt_dwarf_unsigned(cur, 2));
		break;
	case DW_OP_const2s:
		push(m, (uint64_t)mt_dwarf_signed(cur, 2));
		break;
	case DW_OP_const4u:
		push(m, mt_dwarf_unsigned(cur, 4));
		break;
	case DW_OP_const4s:
		push(m, (uint64_t)mt_dwarf_signed(cur, 4));
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, mt_dwarf_unsigned(cur, 8));
		break;
	case DW_OP_constu:
		push(m, mt_dwarf_uleb(cur));
		break;
	case DW_OP_consts:
		push(m, (uint64_t)mt_dwarf_sleb(cur));
		break;
	case DW_OP_deref:
		dereference(m, 8);
		break;
	case DW_OP_deref_size:
		dereference(m, mt_dwarf_u8(cur));
		break;
	case DW_OP_skip:
		jump(m, true);
		break;
	case DW_OP_bra:
		jump(m, pop(m) != 0);
		break;
	case DW_OP_nop:
		break;
	default:
		step_stack(m, op);
		break;
	}
}

enum mt_stop mt_expression_evaluate(const uint8_t *bytes, size_t len,
				    const struct mt_window *window, const struct mt_registers *regs,
				    const uint64_t *initial, uint64_t *ret)
{
	struct machine m;
	unsigned int left = MT_EXPRESSION_STEPS;
	uint64_t value;

	/* Not = { }: the stack is hardly used. */
	m.cur = (struct mt_dwarf_cursor){ .pos = bytes, .end = bytes + len };
	m.start = bytes;
	m.window = window;
	m.regs = regs;
	m.stop = MT_STOP_NONE;
	m.depth = 0;
	if (initial)
		push(&m, *initial);
	while (m.stop == MT_STOP_NONE && mt_dwarf_left(&m.cur)) {
		if (!left--)
			return MT_STOP_BAD;
		step(&m);
		if (m.cur.failed)
			return MT_STOP_BAD;
	}
	value = pop(&m);
	if (m.stop == MT_STOP_NONE)
		*ret = value;
	return m.stop;
}
