/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi_oracle.c - collector/cfi.h against libdw, at every row of real files
 *
 *   cfi_oracle [FILE...]
 *
 * Without files: the libraries that it is linked with, and the interpreters and compilers
 * that are installed.  At the first and at the last address of each row that libdw finds,
 * the rules of all 17 registers and of the CFA have to be the same; so has the row that is
 * found through an index made here instead of .eh_frame_hdr's table.  Each file's counts go
 * to stdout; the exit status is 0 if nothing differs, 77 if no file could be read.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/cfi_entry.h"
#include "collector/image.h"

#define SHOWN_DIFFERENCES 5

/* What libdw takes for callee-saved: it has rax (0) where the psABI has rbx (3). */
#define THEIR_CALLEE_SAVED (1 << 0 | 1 << 6 | 0xf << 12)

/* The counts of a file or of all. */
struct counts {
	unsigned long files, fdes, rows, differences;
};

/* One section of one file, as both see it. */
struct comparison {
	const char *path;
	Dwarf_CFI *theirs;
	const struct mt_cfi *ours;
	const struct mt_cfi *indexed; /* ours, by an index made here; NULL: ours has no table */
	struct counts counts;
};

static bool same_operation(const Dwarf_Op *op, struct mt_dwarf_cursor *cur)
{
	uint8_t atom = mt_dwarf_u8(cur);
	uint64_t number = 0, number2 = 0;

	switch (atom) {
	case DW_OP_breg0 ... DW_OP_breg31:
	case DW_OP_consts:
		number = (uint64_t)mt_dwarf_sleb(cur);
		break;
	case DW_OP_bregx:
		number = mt_dwarf_uleb(cur);
		number2 = (uint64_t)mt_dwarf_sleb(cur);
		break;
	case DW_OP_constu:
	case DW_OP_plus_uconst:
		number = mt_dwarf_uleb(cur);
		break;
	case DW_OP_const1u:
	case DW_OP_pick:
	case DW_OP_deref_size:
		number = mt_dwarf_unsigned(cur, 1);
		break;
	case DW_OP_const1s:
		number = (uint64_t)mt_dwarf_signed(cur, 1);
		break;
	case DW_OP_const2u:
		number = mt_dwarf_unsigned(cur, 2);
		break;
	case DW_OP_const2s:
	case DW_OP_skip:
	case DW_OP_bra:
		number = (uint64_t)mt_dwarf_signed(cur, 2);
		break;
	case DW_OP_const4u:
		number = mt_dwarf_unsigned(cur, 4);
		break;
	case DW_OP_const4s:
		number = (uint64_t)mt_dwarf_signed(cur, 4);
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		number = mt_dwarf_unsigned(cur, 8);
		break;
	}
	return !cur->failed && op->atom == atom && op->number == number && op->number2 == number2;
}

static bool same_expression(const struct mt_rule *rule, const Dwarf_Op *ops, size_t len)
{
	struct mt_dwarf_cursor cur = {
		.pos = rule->expression,
		.end = rule->expression + rule->expression_bytes,
	};

	for (size_t i = 0; i < len; i++)
		if (!same_operation(&ops[i], &cur))
			return false;
	return !mt_dwarf_left(&cur);
}

static bool same_cfa(const struct mt_rule *rule, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t len;

	if (dwarf_frame_cfa(frame, &ops, &len))
		return false;
	if (rule->kind == MT_RULE_EXPRESSION)
		return same_expression(rule, ops, len);
	if (rule->kind != MT_RULE_REGISTER || len != 1)
		return rule->kind == MT_RULE_UNDEFINED && len == 0;
	if (ops->atom == DW_OP_bregx)
		return ops->number == rule->reg && (int64_t)ops->number2 == rule->offset;
	return ops->atom == DW_OP_breg0 + rule->reg && (int64_t)ops->number == rule->offset;
}

/* Whether the operations are "CFA + offset", and a value or a place as asked for. */
static bool is_cfa_plus(const Dwarf_Op *ops, size_t len, int64_t offset, bool value)
{
	size_t i = 0;

	if (len < 1 || ops[i++].atom != DW_OP_call_frame_cfa)
		return false;
	if (offset &&
	    (i == len || ops[i].atom != DW_OP_plus_uconst || (int64_t)ops[i++].number != offset))
		return false;
	if (value && (i == len || ops[i++].atom != DW_OP_stack_value))
		return false;
	return i == len;
}

static bool same_register(const struct mt_rule *rule, int reg, Dwarf_Frame *frame)
{
	Dwarf_Op memory[3], *ops;
	size_t len;
	bool same, undefined;

	if (dwarf_frame_register(frame, reg, memory, &ops, &len))
		return false;
	same = !len && !ops;
	undefined = !len && ops;
	switch (rule->kind) {
	case MT_RULE_DEFAULT:
		if (reg == MT_REG_RSP)
			return is_cfa_plus(ops, len, 0, true);
		return THEIR_CALLEE_SAVED >> reg & 1 ? same : undefined;
	case MT_RULE_UNDEFINED:
		return undefined;
	case MT_RULE_SAME:
		return same;
	case MT_RULE_AT_CFA:
		return is_cfa_plus(ops, len, rule->offset, false);
	case MT_RULE_CFA:
		return is_cfa_plus(ops, len, rule->offset, true);
	case MT_RULE_REGISTER:
		return len == 1 && ((ops->atom == DW_OP_regx && ops->number == rule->reg) ||
				    ops->atom == DW_OP_reg0 + rule->reg);
	case MT_RULE_AT_EXPRESSION:
		return len && ops[0].atom == DW_OP_call_frame_cfa &&
		       same_expression(rule, ops + 1, len - 1);
	case MT_RULE_EXPRESSION:
		return len >= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		       ops[len - 1].atom == DW_OP_stack_value &&
		       same_expression(rule, ops + 1, len - 2);
	default:
		return false;
	}
}

static bool same_rule(const struct mt_rule *a, const struct mt_rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->offset == b->offset &&
	       a->expression_bytes == b->expression_bytes;
}

static bool same_row(const struct mt_cfi_row *a, const struct mt_cfi_row *b)
{
	for (int reg = 0; reg < _MT_REG_MAX; reg++)
		if (!same_rule(&a->regs[reg], &b->regs[reg]))
			return false;
	return a->start == b->start && a->end == b->end && a->signal == b->signal &&
	       same_rule(&a->cfa, &b->cfa);
}

static void differ(struct comparison *c, uint64_t vaddr, const char *what, int reg)
{
	if (c->counts.differences++ < SHOWN_DIFFERENCES)
		fprintf(stderr, "%s: %#lx: %s %d\n", c->path, (unsigned long)vaddr, what, reg);
}

static void compare_at(struct comparison *c, uint64_t vaddr, Dwarf_Frame *frame, bool signal)
{
	struct mt_cfi_row row, other;

	if (mt_cfi_find(c->ours, vaddr, &row) < 0)
		return differ(c, vaddr, "not found", 0);
	if (c->indexed && (mt_cfi_find(c->indexed, vaddr, &other) < 0 || !same_row(&row, &other)))
		differ(c, vaddr, "other by the index", 0);
	if (row.signal != signal)
		differ(c, vaddr, "signal", row.signal);
	if (!same_cfa(&row.cfa, frame))
		differ(c, vaddr, "CFA, kind", row.cfa.kind);
	for (int reg = 0; reg < _MT_REG_MAX; reg++)
		if (!same_register(&row.regs[reg], reg, frame))
			differ(c, vaddr, "register", reg);
}

static void compare_fde(struct comparison *c, const struct mt_fde *fde)
{
	uint64_t pc = fde->start;

	c->counts.fdes++;
	while (pc < fde->end) {
		mt_cleanup(mt_freep) Dwarf_Frame *frame = NULL;
		Dwarf_Addr start, end;
		struct mt_cfi_row row;
		bool signal;

		if (dwarf_cfi_addrframe(c->theirs, pc, &frame)) {
			if (mt_cfi_find(c->ours, pc, &row) == 0)
				differ(c, pc, "libdw has nothing", 0);
			return;
		}
		if (dwarf_frame_info(frame, &start, &end, &signal) != MT_REG_RIP)
			differ(c, pc, "return address register", 0);
		/* Not this entry's row: entries overlap. */
		if (start > pc || end <= pc)
			return differ(c, pc, "libdw's row is elsewhere", 0);
		compare_at(c, pc, frame, signal);
		if (end - 1 > pc && end <= fde->end)
			compare_at(c, end - 1, frame, signal);
		c->counts.rows++;
		pc = end;
	}
}

static void compare_section(struct comparison *c, const struct mt_cfi_source *source)
{
	struct mt_cfi_raw_entry entry;
	struct mt_cie cie;
	struct mt_fde fde;

	for (size_t at = 0; mt_cfi_entry_read(source, at, &entry) == 0; at = entry.next) {
		if (entry.is_cie)
			continue;
		if (mt_cie_read(source, entry.cie, &cie) < 0 ||
		    mt_fde_read(source, &entry, &cie, &fde) < 0)
			differ(c, at, "entry not read", 0);
		else if (fde.start)
			compare_fde(c, &fde);
	}
}

static int compare_eh_frame(struct comparison *c, const struct mt_image *image, Elf *elf)
{
	struct mt_cfi_source source = {
		.section = image->cfi.sections.eh_frame,
		.got_vaddr = image->cfi.sections.got_vaddr,
	};
	struct mt_cfi_sections without_table = { .eh_frame = source.section };
	mt_cleanup(mt_cfi_done) struct mt_cfi indexed = { 0 };
	int r;

	if (!source.section.len)
		return 0;
	c->theirs = dwarf_getcfi_elf(elf);
	if (!c->theirs)
		return 0;
	c->ours = &image->cfi;
	if (image->cfi.table.len) {
		r = mt_cfi_init(&indexed, &without_table);
		if (r < 0)
			return r;
		c->indexed = &indexed;
	}
	compare_section(c, &source);
	dwarf_cfi_end(c->theirs);
	return 0;
}

static int compare_debug_frame(struct comparison *c, const struct mt_image *image, Elf *elf)
{
	struct mt_cfi_source source = {
		.section = image->cfi.sections.debug_frame,
		.is_debug_frame = true,
	};
	struct mt_cfi_sections alone = { .debug_frame = source.section };
	mt_cleanup(mt_cfi_done) struct mt_cfi cfi = { 0 };
	Dwarf *dwarf;
	int r;

	if (!source.section.len)
		return 0;
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!dwarf)
		return 0;
	r = mt_cfi_init(&cfi, &alone);
	if (r == 0) {
		/* Owned by dwarf. */
		c->theirs = dwarf_getcfi(dwarf);
		c->ours = &cfi;
		c->indexed = NULL;
		if (c->theirs)
			compare_section(c, &source);
	}
	dwarf_end(dwarf);
	return r;
}

static void compare_file(const char *path, struct counts *total)
{
	mt_cleanup(mt_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	struct comparison c = { .path = path };
	GElf_Ehdr ehdr;
	Elf *elf;

	if (fd < 0 || mt_image_new_fd(fd, &image) < 0)
		return;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return;
	if (gelf_getehdr(elf, &ehdr) && ehdr.e_machine == EM_X86_64 &&
	    (compare_eh_frame(&c, image, elf) < 0 || compare_debug_frame(&c, image, elf) < 0))
		differ(&c, 0, "no memory", 0);
	elf_end(elf);
	if (!c.counts.fdes)
		return;
	printf("# %s: %lu FDEs, %lu rows, %lu differences\n", path, c.counts.fdes, c.counts.rows,
	       c.counts.differences);
	total->files++;
	total->fdes += c.counts.fdes;
	total->rows += c.counts.rows;
	total->differences += c.counts.differences;
}

static int compare_loaded(struct dl_phdr_info *info, size_t size, void *ctx)
{
	if (info->dlpi_name[0] == '/')
		compare_file(info->dlpi_name, ctx);
	return 0;
}

static void compare_installed(struct counts *total)
{
	static const char *const patterns[] = {
		"/usr/lib/*/libstdc++.so.6",
		"/usr/lib/*/libpython3*.so.1.0",
		"/usr/lib/*/libgcc_s.so.1",
		"/usr/bin/python3",
		"/usr/bin/perl",
		"/bin/bash",
		"/usr/lib/gcc/*/*/cc1",
	};
	glob_t found;

	dl_iterate_phdr(compare_loaded, total);
	compare_file("/proc/self/exe", total);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc; j++)
			compare_file(found.gl_pathv[j], total);
		globfree(&found);
	}
}

int main(int argc, char **argv)
{
	struct counts total = { 0 };

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		compare_file(argv[i], &total);
	if (argc == 1)
		compare_installed(&total);
	printf("# %lu files, %lu FDEs, %lu rows, %lu differences\n", total.files, total.fdes,
	       total.rows, total.differences);
	if (!total.files)
		return 77;
	return total.differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
