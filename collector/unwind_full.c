/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind_full.c - see unwind_full.h for the contract
 *
 * Invariants
 *   - A register that can not be told is unknown, not wrong; only a frame that needs it
 *     ends the chain.
 *   - The stack pointer moves up with each frame, but for the frame of a signal handler's
 *     return: there it goes to where the interrupted code had it.
 */
#include "collector/unwind_full.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/expression.h"
#include "collector/frame_pointer.h"
#include "wire/reference.h"

#define BIT(reg) (1U << (reg))

/* What a function must leave as it was, by the psABI. */
#define CALLEE_SAVED                                                                               \
	(BIT(MT_REG_RBX) | BIT(MT_REG_RBP) | BIT(MT_REG_R12) | BIT(MT_REG_R13) | BIT(MT_REG_R14) | \
	 BIT(MT_REG_R15))

struct mt_row_cache_entry {
	uint64_t lookup; /* the address looked up */
	uint64_t stamp;	 /* of the space that it was looked up in; 0: free */
	int error;	 /* of mt_cfi_find(); -ESRCH: no module */
	uint32_t module;
	uint64_t bias;
	bool return_known, is_return; /* mt_frame_pointer_is_return() of the address behind */
	struct mt_cfi_row row;
};

/* A frame on its way to its caller. */
struct walk {
	struct mt_unwind_full *full;
	const struct mt_space *space;
	const struct mt_window *window;
	struct mt_registers regs;
	bool exact;  /* the frame below is a signal frame */
	bool linked; /* the frame below was left by its frame pointer */
};

void mt_unwind_full_done(struct mt_unwind_full *full)
{
	free(full->rows);
	*full = (struct mt_unwind_full){ 0 };
}

static struct mt_row_cache_entry *look_up(struct mt_unwind_full *full, const struct mt_space *space,
					  uint64_t pc)
{
	struct mt_row_cache_entry
		*entry = &full->rows[(pc ^ space->stamp * 0x9e3779b97f4a7c15ULL) % MT_ROW_CACHE];
	const struct mt_space_range *range;

	if (entry->lookup == pc && entry->stamp == space->stamp)
		return entry;
	range = mt_space_find(space, pc);
	entry->lookup = pc;
	entry->stamp = space->stamp;
	entry->module = range ? range->module : MT_NO_MODULE;
	entry->bias = range ? range->bias : 0;
	entry->return_known = false;
	if (!range)
		entry->error = -ESRCH;
	else if (!range->image)
		entry->error = -ENOENT;
	else
		entry->error = mt_cfi_find(&range->image->cfi, pc - range->bias, &entry->row);
	return entry;
}

static bool is_return(const struct walk *walk, uint64_t pc)
{
	struct mt_row_cache_entry *entry = look_up(walk->full, walk->space, pc - 1);

	if (!entry->return_known)
		entry->is_return = mt_frame_pointer_is_return(walk->space, pc);
	entry->return_known = true;
	return entry->is_return;
}

static void set(struct mt_registers *regs, unsigned int reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->known |= BIT(reg);
}

static enum mt_stop find_cfa(const struct walk *walk, const struct mt_rule *rule, uint64_t *ret)
{
	switch (rule->kind) {
	case MT_RULE_REGISTER:
		if (!mt_register_known(&walk->regs, rule->reg))
			return mt_register_missing(&walk->regs, rule->reg);
		*ret = walk->regs.value[rule->reg] + (uint64_t)rule->offset;
		return MT_STOP_NONE;
	case MT_RULE_EXPRESSION:
		return mt_expression_evaluate(rule->expression, rule->expression_bytes,
					      walk->window, &walk->regs, NULL, ret);
	default:
		return MT_STOP_BAD;
	}
}

static enum mt_stop read_word(const struct walk *walk, uint64_t address, uint64_t *ret)
{
	return mt_window_read(walk->window, address, ret)
		       ? MT_STOP_NONE
		       : mt_window_missing(walk->window, address);
}

/* A rule of the kinds MT_RULE_AT_EXPRESSION and MT_RULE_EXPRESSION. */
static enum mt_stop evaluate(const struct walk *walk, const struct mt_rule *rule, uint64_t cfa,
			     uint64_t *ret)
{
	uint64_t value;
	enum mt_stop stop = mt_expression_evaluate(rule->expression, rule->expression_bytes,
						   walk->window, &walk->regs, &cfa, &value);

	if (stop == MT_STOP_NONE && rule->kind == MT_RULE_AT_EXPRESSION)
		return read_word(walk, value, ret);
	if (stop == MT_STOP_NONE)
		*ret = value;
	return stop;
}

/* reg's value in the caller; anything but NONE: why it is not known. */
static enum mt_stop find_register(const struct walk *walk, const struct mt_cfi_row *row,
				  unsigned int reg, uint64_t cfa, uint64_t *ret)
{
	const struct mt_rule *rule = &row->regs[reg];
	unsigned int from = reg;

	switch (rule->kind) {
	case MT_RULE_AT_CFA:
		return read_word(walk, cfa + (uint64_t)rule->offset, ret);
	case MT_RULE_CFA:
		*ret = cfa + (uint64_t)rule->offset;
		return MT_STOP_NONE;
	case MT_RULE_AT_EXPRESSION:
	case MT_RULE_EXPRESSION:
		return evaluate(walk, rule, cfa, ret);
	case MT_RULE_DEFAULT:
		if (reg == MT_REG_RSP) {
			*ret = cfa;
			return MT_STOP_NONE;
		}
		if (!(CALLEE_SAVED & BIT(reg)))
			return MT_STOP_BAD;
		break;
	case MT_RULE_SAME:
		if (reg == MT_REG_RIP)
			return MT_STOP_BAD;
		break;
	case MT_RULE_REGISTER:
		from = rule->reg;
		break;
	default:
		return MT_STOP_BAD;
	}
	if (!mt_register_known(&walk->regs, from))
		return mt_register_missing(&walk->regs, from);
	*ret = walk->regs.value[from];
	return MT_STOP_NONE;
}

static enum mt_stop step_by_row(struct walk *walk, const struct mt_cfi_row *row)
{
	struct mt_registers caller = { 0 };
	uint64_t cfa, value;
	enum mt_stop stop;

	if (row->regs[MT_REG_RIP].kind == MT_RULE_UNDEFINED)
		return MT_STOP_END;
	stop = find_cfa(walk, &row->cfa, &cfa);
	if (stop == MT_STOP_NONE)
		stop = find_register(walk, row, MT_REG_RSP, cfa, &value);
	if (stop != MT_STOP_NONE)
		return stop;
	if (!row->signal && value <= walk->regs.value[MT_REG_RSP])
		return MT_STOP_BAD;
	set(&caller, MT_REG_RSP, value);
	for (unsigned int reg = 0; reg < _MT_REG_MAX; reg++) {
		if (reg == MT_REG_RSP)
			continue;
		stop = find_register(walk, row, reg, cfa, &value);
		if (stop == MT_STOP_NONE)
			set(&caller, reg, value);
		else if (reg == MT_REG_RIP)
			return stop;
		else if (stop == MT_STOP_TRUNCATED)
			caller.above |= BIT(reg);
	}
	walk->regs = caller;
	walk->exact = row->signal;
	walk->linked = false;
	return MT_STOP_NONE;
}

static enum mt_stop step_by_frame_pointer(struct walk *walk, enum mt_stop otherwise)
{
	const struct mt_registers *regs = &walk->regs;
	struct mt_registers caller = { 0 };
	struct mt_frame_pointer_caller found;
	uint64_t rbp;
	enum mt_stop stop;

	if (!mt_register_known(regs, MT_REG_RBP))
		return regs->above & BIT(MT_REG_RBP) ? MT_STOP_TRUNCATED : otherwise;
	stop = mt_frame_pointer_follow(walk->window, regs->value[MT_REG_RSP],
				       regs->value[MT_REG_RBP], walk->linked, otherwise, &found);
	if (stop != MT_STOP_NONE)
		return stop;
	if (!is_return(walk, found.pc))
		return otherwise;
	set(&caller, MT_REG_RIP, found.pc);
	set(&caller, MT_REG_RSP, found.sp);
	/* It lies below the return address, in the window. */
	if (mt_window_read(walk->window, found.rbp_at, &rbp))
		set(&caller, MT_REG_RBP, rbp);
	walk->regs = caller;
	walk->exact = false;
	walk->linked = true;
	return MT_STOP_NONE;
}

/* What a probe's nop has become a call of, in Linux 6.18: a page of the kernel's that is in no
 * module, [uprobes-trampoline].  It pushes rcx, r11 and rax, makes a system call, and pops them;
 * arch/x86/kernel/uprobes.c. */
static const struct {
	uint16_t at;
	uint16_t pushed;
} trampoline[] = {
	{ 0x00, 0 }, { 0x01, 1 }, { 0x03, 2 }, { 0x04, 3 }, { 0x0b, 3 },
	{ 0x0d, 3 }, { 0x0e, 2 }, { 0x10, 1 }, { 0x11, 0 },
};

/* Whether the code before the address, as its file has it, is such a nop. */
static bool is_behind_nop(const struct mt_space *space, uint64_t pc)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	const struct mt_space_range *range = mt_space_find(space, pc - 1);
	uint8_t bytes[sizeof(nop)];

	return range && range->image &&
	       mt_image_read_before(range->image, pc - range->bias, bytes, sizeof(bytes)) ==
		       (ssize_t)sizeof(bytes) &&
	       !memcmp(bytes, nop, sizeof(nop));
}

/* A signal came there: mostly where the system call returns. */
static bool step_out_of_trampoline(struct walk *walk)
{
	const uint64_t *value = walk->regs.value;
	uint64_t at, pc;

	for (size_t i = 0; i < sizeof(trampoline) / sizeof(trampoline[0]); i++) {
		if (value[MT_REG_RIP] % MT_PAGE_BYTES != trampoline[i].at)
			continue;
		at = value[MT_REG_RSP] + 8 * (uint64_t)trampoline[i].pushed;
		if (!mt_window_read(walk->window, at, &pc) || !is_behind_nop(walk->space, pc))
			return false;
		set(&walk->regs, MT_REG_RIP, pc);
		set(&walk->regs, MT_REG_RSP, at + 8);
		walk->exact = false;
		walk->linked = false;
		return true;
	}
	return false;
}

static enum mt_stop step(struct walk *walk, const struct mt_row_cache_entry *entry)
{
	switch (entry->error) {
	case 0:
		return step_by_row(walk, &entry->row);
	case -ENOENT:
		return step_by_frame_pointer(walk, MT_STOP_NO_CFI);
	case -ESRCH:
		if (walk->exact && step_out_of_trampoline(walk))
			return MT_STOP_NONE;
		return step_by_frame_pointer(walk, MT_STOP_NO_MODULE);
	default:
		return MT_STOP_BAD;
	}
}

/* The caller of the function that pushed the window's first words. */
static void start(struct walk *walk)
{
	static const struct {
		uint8_t reg, word;
	} saved[] = {
		{ MT_REG_RBX, MT_SAVED_RBX }, { MT_REG_RBP, MT_SAVED_RBP },
		{ MT_REG_R12, MT_SAVED_R12 }, { MT_REG_R13, MT_SAVED_R13 },
		{ MT_REG_R14, MT_SAVED_R14 }, { MT_REG_R15, MT_SAVED_R15 },
		{ MT_REG_RIP, MT_SAVED_RIP },
	};
	uint64_t value, at = walk->window->start;

	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++)
		if (mt_window_read(walk->window, at + 8 * saved[i].word, &value))
			set(&walk->regs, saved[i].reg, value);
	set(&walk->regs, MT_REG_RSP, at + 8 * MT_SAVED_WORDS);
}

static bool on_window(const struct walk *walk)
{
	uint64_t rsp = walk->regs.value[MT_REG_RSP];

	return rsp >= walk->window->start && rsp < walk->window->end;
}

static enum mt_stop walk_up(struct mt_unwind_full *full, struct walk *walk, struct mt_trace *ret)
{
	const struct mt_row_cache_entry *entry;
	enum mt_stop stop;
	uint64_t pc;

	for (;;) {
		pc = walk->regs.value[MT_REG_RIP];
		if (!pc && !walk->exact)
			return ret->len ? MT_STOP_END : MT_STOP_BAD;
		if (ret->len == MT_TRACE_FRAMES)
			return MT_STOP_DEPTH;
		entry = look_up(full, walk->space, walk->exact ? pc : pc - 1);
		ret->frames[ret->len++] = (struct mt_frame){
			.offset = pc - entry->bias,
			.module = entry->module,
			.exact = walk->exact,
		};
		/* The handler ran on a stack of its own: what it interrupted is elsewhere. */
		if (walk->exact && !on_window(walk))
			return MT_STOP_TRUNCATED;
		stop = step(walk, entry);
		if (stop != MT_STOP_NONE)
			return stop;
	}
}

int mt_unwind_full(struct mt_unwind_full *full, const struct mt_space *space,
		   const struct mt_window *window, struct mt_trace *ret)
{
	struct walk walk = { .full = full, .space = space, .window = window };

	if (!full->rows)
		full->rows = calloc(MT_ROW_CACHE, sizeof(*full->rows));
	if (!full->rows)
		return -ENOMEM;
	start(&walk);
	ret->len = 0;
	if (mt_register_known(&walk.regs, MT_REG_RIP))
		ret->stop = walk_up(full, &walk, ret);
	else
		ret->stop = MT_STOP_TRUNCATED;
	return 0;
}
