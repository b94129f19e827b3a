/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi.c - see cfi.h for the contract
 *
 * Invariants
 *   - What the search finds is only a hint: the FDE itself says which addresses it is
 *     about, so that a table or an index that is out of order costs rows but gives no
 *     wrong one.
 *   - .eh_frame comes first: it is what the program itself unwinds with.
 */
#include "collector/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/cfi_entry.h"
#include "collector/cfi_program.h"

/* The last of entries that begins at vaddr or before is at index ret - 1; 0: none. */
static size_t index_upper_bound(const struct mt_cfi_index *index, uint64_t vaddr)
{
	size_t low = 0, high = index->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t table_number(const struct mt_cfi_table *table, size_t i)
{
	struct mt_dwarf_cursor cur = {
		.pos = table->bytes + i * table->width,
		.end = table->bytes + (i + 1) * table->width,
	};
	uint64_t number = table->is_signed ? (uint64_t)mt_dwarf_signed(&cur, table->width)
					   : mt_dwarf_unsigned(&cur, table->width);

	return table->base + number;
}

static size_t table_upper_bound(const struct mt_cfi_table *table, uint64_t vaddr)
{
	size_t low = 0, high = table->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table_number(table, 2 * middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The head of .eh_frame_hdr: cur is behind it then. */
static int read_hdr(const struct mt_cfi_section *hdr, struct mt_dwarf_cursor *cur,
		    uint8_t *ret_count_encoding, uint8_t *ret_table_encoding,
		    uint64_t *ret_eh_frame_vaddr)
{
	uint8_t version, encoding;

	if (!hdr->len)
		return -ENOENT;
	*cur = (struct mt_dwarf_cursor){ .pos = hdr->bytes, .end = hdr->bytes + hdr->len };
	version = mt_dwarf_u8(cur);
	encoding = mt_dwarf_u8(cur);
	*ret_count_encoding = mt_dwarf_u8(cur);
	*ret_table_encoding = mt_dwarf_u8(cur);
	if (cur->failed || version != 1 || encoding == DW_EH_PE_omit)
		return -ENOENT;
	return mt_cfi_pointer_read(hdr, cur, encoding, hdr->vaddr, ret_eh_frame_vaddr) < 0 ? -ENOENT
											   : 0;
}

int mt_cfi_eh_frame_vaddr(const struct mt_cfi_section *eh_frame_hdr, uint64_t *ret)
{
	struct mt_dwarf_cursor cur;
	uint8_t count_encoding, table_encoding;

	return read_hdr(eh_frame_hdr, &cur, &count_encoding, &table_encoding, ret);
}

/* Leaves the table empty where there is none, or none that can be searched. */
static void open_table(struct mt_cfi *cfi)
{
	const struct mt_cfi_section *hdr = &cfi->sections.eh_frame_hdr;
	struct mt_cfi_table table = { .width = 4 };
	uint8_t count_encoding, table_encoding;
	struct mt_dwarf_cursor cur;
	uint64_t vaddr, count;

	if (!cfi->sections.eh_frame.len ||
	    read_hdr(hdr, &cur, &count_encoding, &table_encoding, &vaddr) < 0)
		return;
	if (count_encoding == DW_EH_PE_omit || table_encoding == DW_EH_PE_omit)
		return;
	if (mt_cfi_pointer_read(hdr, &cur, count_encoding, hdr->vaddr, &count) < 0)
		return;
	switch (table_encoding & 0x0f) {
	case DW_EH_PE_sdata4:
		table.is_signed = true;
		break;
	case DW_EH_PE_udata4:
		break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		table.width = 8;
		break;
	default:
		return;
	}
	if ((table_encoding & 0xf0) == DW_EH_PE_datarel)
		table.base = hdr->vaddr;
	else if (table_encoding & 0xf0)
		return;
	table.bytes = cur.pos;
	table.len = mt_dwarf_left(&cur) / (2 * table.width);
	if (count < table.len)
		table.len = (size_t)count;
	cfi->table = table;
}

static int compare_entries(const void *a, const void *b)
{
	const struct mt_cfi_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int append_entry(struct mt_cfi_index *index, size_t *capacity, struct mt_cfi_entry entry)
{
	struct mt_cfi_entry *entries;
	size_t more;

	if (index->len == *capacity) {
		more = *capacity ? 2 * *capacity : 64;
		entries = reallocarray(index->entries, more, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		index->entries = entries;
		*capacity = more;
	}
	index->entries[index->len++] = entry;
	return 0;
}

/*
 * One pass over all entries.  What can not be read is left out; behind an entry whose
 * length leads out of the section there is nothing to be found.
 */
static int build_index(const struct mt_cfi_source *source, struct mt_cfi_index *ret)
{
	struct mt_cfi_raw_entry entry;
	struct mt_cie cie = { 0 };
	size_t cie_offset = SIZE_MAX, capacity = 0;
	struct mt_fde fde;
	int r;

	for (size_t at = 0; mt_cfi_entry_read(source, at, &entry) == 0; at = entry.next) {
		if (entry.is_cie)
			continue;
		if (entry.cie != cie_offset) {
			cie_offset = SIZE_MAX;
			if (mt_cie_read(source, entry.cie, &cie) < 0)
				continue;
			cie_offset = entry.cie;
		}
		/* A function that the linker dropped begins at 0. */
		if (mt_fde_read(source, &entry, &cie, &fde) < 0 || !fde.start ||
		    fde.start == fde.end)
			continue;
		r = append_entry(ret, &capacity,
				 (struct mt_cfi_entry){ fde.start, fde.end, entry.offset });
		if (r < 0)
			return r;
	}
	if (ret->len)
		qsort(ret->entries, ret->len, sizeof(*ret->entries), compare_entries);
	return 0;
}

static struct mt_cfi_source eh_source(const struct mt_cfi *cfi)
{
	return (struct mt_cfi_source){
		.section = cfi->sections.eh_frame,
		.got_vaddr = cfi->sections.got_vaddr,
	};
}

static struct mt_cfi_source debug_source(const struct mt_cfi *cfi)
{
	return (struct mt_cfi_source){
		.section = cfi->sections.debug_frame,
		.is_debug_frame = true,
	};
}

void mt_cfi_done(struct mt_cfi *cfi)
{
	free(cfi->eh_index.entries);
	free(cfi->debug_index.entries);
	*cfi = (struct mt_cfi){ 0 };
}

int mt_cfi_init(struct mt_cfi *cfi, const struct mt_cfi_sections *sections)
{
	mt_cleanup(mt_cfi_done) struct mt_cfi made = { .sections = *sections };
	struct mt_cfi_source source;
	int r;

	open_table(&made);
	if (!made.table.len && sections->eh_frame.len) {
		source = eh_source(&made);
		r = build_index(&source, &made.eh_index);
		if (r < 0)
			return r;
	}
	if (sections->debug_frame.len) {
		source = debug_source(&made);
		r = build_index(&source, &made.debug_index);
		if (r < 0)
			return r;
	}
	*cfi = made;
	made = (struct mt_cfi){ 0 };
	return 0;
}

/* The row of the FDE at offset, if it is one that covers vaddr. */
static int find_row(const struct mt_cfi_source *source, size_t offset, uint64_t vaddr,
		    struct mt_cfi_row *ret)
{
	struct mt_cfi_raw_entry entry;
	struct mt_cie cie;
	struct mt_fde fde;
	int r;

	r = mt_cfi_entry_read(source, offset, &entry);
	if (r < 0 || entry.is_cie)
		return -EBADMSG;
	r = mt_cie_read(source, entry.cie, &cie);
	if (r < 0)
		return r;
	r = mt_fde_read(source, &entry, &cie, &fde);
	if (r < 0)
		return r;
	if (vaddr < fde.start || vaddr >= fde.end)
		return -ENOENT;
	return mt_cfi_program_run(source, &cie, &fde, vaddr, ret);
}

static int find_by_table(const struct mt_cfi *cfi, uint64_t vaddr, struct mt_cfi_row *ret)
{
	struct mt_cfi_source source = eh_source(cfi);
	size_t i = table_upper_bound(&cfi->table, vaddr);

	if (!i)
		return -ENOENT;
	/* An offset that wraps is too large for the section. */
	return find_row(&source, table_number(&cfi->table, 2 * (i - 1) + 1) - source.section.vaddr,
			vaddr, ret);
}

static int find_by_index(const struct mt_cfi_source *source, const struct mt_cfi_index *index,
			 uint64_t vaddr, struct mt_cfi_row *ret)
{
	size_t i = index_upper_bound(index, vaddr);

	if (!i || vaddr >= index->entries[i - 1].end)
		return -ENOENT;
	return find_row(source, index->entries[i - 1].offset, vaddr, ret);
}

int mt_cfi_find(const struct mt_cfi *cfi, uint64_t vaddr, struct mt_cfi_row *ret)
{
	struct mt_cfi_source source;
	int r;

	if (cfi->table.len) {
		r = find_by_table(cfi, vaddr, ret);
	} else {
		source = eh_source(cfi);
		r = find_by_index(&source, &cfi->eh_index, vaddr, ret);
	}
	if (r != -ENOENT)
		return r;
	source = debug_source(cfi);
	return find_by_index(&source, &cfi->debug_index, vaddr, ret);
}

/* Whether the bytes are "breg(rbp) offset", with a deref behind or without. */
static bool is_at_rbp(const struct mt_rule *rule, bool deref, int64_t *ret_offset)
{
	struct mt_dwarf_cursor cur = {
		.pos = rule->expression,
		.end = rule->expression + rule->expression_bytes,
	};
	int64_t offset;

	if (mt_dwarf_u8(&cur) != DW_OP_breg0 + MT_REG_RBP)
		return false;
	offset = mt_dwarf_sleb(&cur);
	if (deref && mt_dwarf_u8(&cur) != DW_OP_deref)
		return false;
	if (cur.failed || mt_dwarf_left(&cur))
		return false;
	*ret_offset = offset;
	return true;
}

/* GCC's functions that align their stack: CFA = *(rbp + offset), rbp at [rbp]. */
static bool is_realigned(const struct mt_cfi_row *row, int64_t *ret_offset)
{
	const struct mt_rule *rbp = &row->regs[MT_REG_RBP];
	int64_t zero;

	return row->cfa.kind == MT_RULE_EXPRESSION && is_at_rbp(&row->cfa, true, ret_offset) &&
	       rbp->kind == MT_RULE_AT_EXPRESSION && is_at_rbp(rbp, false, &zero) && !zero;
}

/* offset / 8, if it has that form; INT64_MAX else, which fits nowhere */
static int64_t in_words(int64_t offset)
{
	return offset & 7 ? INT64_MAX : offset / 8;
}

struct mt_fast_row mt_cfi_fast(const struct mt_cfi_row *row)
{
	static const struct mt_fast_row full = { .kind = MT_FAST_FULL };
	const struct mt_rule *rbp = &row->regs[MT_REG_RBP], *rip = &row->regs[MT_REG_RIP];
	const struct mt_rule *rsp = &row->regs[MT_REG_RSP];
	struct mt_fast_row fast = { 0 };
	int64_t cfa, rbp_at = 0;

	if (rip->kind == MT_RULE_UNDEFINED)
		return (struct mt_fast_row){ .kind = MT_FAST_END };
	if (row->signal || rip->kind != MT_RULE_AT_CFA || rip->offset != -8)
		return full;
	if (rsp->kind != MT_RULE_DEFAULT && !(rsp->kind == MT_RULE_CFA && !rsp->offset))
		return full;

	if (is_realigned(row, &cfa)) {
		fast.kind = MT_FAST_CFA_AT_RBP;
		cfa = in_words(cfa);
	} else if (row->cfa.kind == MT_RULE_REGISTER && row->cfa.reg == MT_REG_RSP) {
		fast.kind = MT_FAST_RSP;
		cfa = in_words(row->cfa.offset);
		/* The fast loop does not check that this one grows. */
		if (cfa <= 0)
			return full;
	} else if (row->cfa.kind == MT_RULE_REGISTER && row->cfa.reg == MT_REG_RBP) {
		fast.kind = MT_FAST_RBP;
		cfa = in_words(row->cfa.offset);
	} else {
		return full;
	}
	if (cfa < INT16_MIN || cfa > INT16_MAX)
		return full;
	fast.cfa = (int16_t)cfa;

	if (fast.kind == MT_FAST_CFA_AT_RBP)
		return fast;
	if (rbp->kind == MT_RULE_AT_CFA)
		rbp_at = in_words(rbp->offset);
	else if (rbp->kind != MT_RULE_DEFAULT && rbp->kind != MT_RULE_SAME)
		return full;
	if ((rbp->kind == MT_RULE_AT_CFA && !rbp_at) || rbp_at < INT8_MIN || rbp_at > INT8_MAX)
		return full;
	fast.rbp = (int8_t)rbp_at;
	return fast;
}
