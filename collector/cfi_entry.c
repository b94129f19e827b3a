/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi_entry.c - see cfi_entry.h for the contract
 *
 * Invariants
 *   - A cursor never reaches behind its entry, and an entry never behind its section, so
 *     that no number needs a check of its own.
 *   - An augmentation with a letter that is not known is refused: letters say how what
 *     follows is laid out.
 */
#include "collector/cfi_entry.h"

#include <dwarf.h>
#include <errno.h>

/* .debug_frame's mark of a CIE, where .eh_frame has 0. */
#define DEBUG_CIE_ID 0xffffffffU
#define DEBUG_CIE_ID_64 0xffffffffffffffffULL
/* A length that says that the real one follows, with 8 bytes. */
#define LENGTH_IS_64 0xffffffffU

static int read_value(const struct mt_cfi_section *section, struct mt_dwarf_cursor *cur,
		      uint8_t encoding, uint64_t *ret)
{
	uint64_t at;

	if ((encoding & 0x70) == DW_EH_PE_aligned) {
		at = section->vaddr + (uint64_t)(cur->pos - section->bytes);
		mt_dwarf_bytes(cur, -at & 7);
	}
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*ret = mt_dwarf_unsigned(cur, 8);
		break;
	case DW_EH_PE_uleb128:
		*ret = mt_dwarf_uleb(cur);
		break;
	case DW_EH_PE_sleb128:
		*ret = (uint64_t)mt_dwarf_sleb(cur);
		break;
	case DW_EH_PE_udata2:
		*ret = mt_dwarf_unsigned(cur, 2);
		break;
	case DW_EH_PE_sdata2:
		*ret = (uint64_t)mt_dwarf_signed(cur, 2);
		break;
	case DW_EH_PE_udata4:
		*ret = mt_dwarf_unsigned(cur, 4);
		break;
	case DW_EH_PE_sdata4:
		*ret = (uint64_t)mt_dwarf_signed(cur, 4);
		break;
	default:
		return -EBADMSG;
	}
	return cur->failed ? -EBADMSG : 0;
}

int mt_cfi_pointer_read(const struct mt_cfi_section *section, struct mt_dwarf_cursor *cur,
			uint8_t encoding, uint64_t base, uint64_t *ret)
{
	uint64_t at = section->vaddr + (uint64_t)(cur->pos - section->bytes);
	uint64_t value;
	int r;

	if (encoding & DW_EH_PE_indirect)
		return -EBADMSG;
	r = read_value(section, cur, encoding, &value);
	if (r < 0)
		return r;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		break;
	case DW_EH_PE_pcrel:
		value += at;
		break;
	case DW_EH_PE_datarel:
		if (!base)
			return -EBADMSG;
		value += base;
		break;
	default:
		return -EBADMSG;
	}
	*ret = value;
	return 0;
}

int mt_cfi_entry_read(const struct mt_cfi_source *source, size_t offset,
		      struct mt_cfi_raw_entry *ret)
{
	const struct mt_cfi_section *section = &source->section;
	struct mt_cfi_raw_entry entry = { .offset = offset };
	struct mt_dwarf_cursor cur = { 0 };
	unsigned int id_width = 4;
	uint64_t len, id, id_offset;

	if (offset >= section->len)
		return -ENOENT;
	cur.pos = section->bytes + offset;
	cur.end = section->bytes + section->len;
	len = mt_dwarf_unsigned(&cur, 4);
	if (len == LENGTH_IS_64) {
		len = mt_dwarf_unsigned(&cur, 8);
		/* .eh_frame's CIE pointers have 4 bytes always. */
		if (source->is_debug_frame)
			id_width = 8;
	}
	if (cur.failed)
		return -EBADMSG;
	if (!len)
		return -ENOENT;
	if (len > mt_dwarf_left(&cur))
		return -EBADMSG;
	cur.end = cur.pos + len;
	entry.next = (size_t)(cur.end - section->bytes);

	id_offset = (uint64_t)(cur.pos - section->bytes);
	id = mt_dwarf_unsigned(&cur, id_width);
	if (cur.failed)
		return -EBADMSG;
	if (source->is_debug_frame) {
		entry.is_cie = id == (id_width == 8 ? DEBUG_CIE_ID_64 : DEBUG_CIE_ID);
		entry.cie = id;
	} else {
		entry.is_cie = id == 0;
		if (id > id_offset)
			return -EBADMSG;
		entry.cie = id_offset - id;
	}
	entry.rest = cur;
	*ret = entry;
	return 0;
}

/* The letters behind 'z', and what they say of the data. */
static int read_augmentation(const struct mt_cfi_source *source, const char *letters,
			     struct mt_dwarf_cursor *cur, struct mt_cie *cie)
{
	uint64_t ignored;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = mt_dwarf_u8(cur);
			break;
		case 'P':
			encoding = mt_dwarf_u8(cur);
			if (encoding == DW_EH_PE_omit)
				break;
			if (read_value(&source->section, cur, encoding, &ignored) < 0)
				return -EBADMSG;
			break;
		case 'L':
			mt_dwarf_u8(cur);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return -EBADMSG;
		}
	}
	return cur->failed ? -EBADMSG : 0;
}

/* The augmentation string; NULL if it is not one, or too long to be one. */
static const char *read_letters(struct mt_dwarf_cursor *cur)
{
	const char *letters = (const char *)cur->pos;
	size_t most = mt_dwarf_left(cur);
	size_t len = strnlen(letters, most < MT_CFI_AUGMENTATION ? most : MT_CFI_AUGMENTATION);

	return mt_dwarf_bytes(cur, len + 1) && !letters[len] ? letters : NULL;
}

int mt_cie_read(const struct mt_cfi_source *source, size_t offset, struct mt_cie *ret)
{
	struct mt_cie cie = { .pointer_encoding = DW_EH_PE_absptr };
	struct mt_cfi_raw_entry entry;
	struct mt_dwarf_cursor cur, data;
	const char *letters;
	const uint8_t *bytes;
	uint64_t len, ra;
	uint8_t version;

	if (mt_cfi_entry_read(source, offset, &entry) < 0 || !entry.is_cie)
		return -EBADMSG;
	cur = entry.rest;
	version = mt_dwarf_u8(&cur);
	letters = read_letters(&cur);
	if (!letters || (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	/* The sizes of an address and of a segment selector. */
	if (version == 4 && (mt_dwarf_u8(&cur) != 8 || mt_dwarf_u8(&cur) != 0))
		return -EBADMSG;
	cie.code_align = mt_dwarf_uleb(&cur);
	cie.data_align = mt_dwarf_sleb(&cur);
	ra = version == 1 ? mt_dwarf_u8(&cur) : mt_dwarf_uleb(&cur);
	if (cur.failed || ra != MT_REG_RIP)
		return -EBADMSG;
	if (*letters == 'z') {
		cie.has_length = true;
		len = mt_dwarf_uleb(&cur);
		bytes = mt_dwarf_bytes(&cur, len);
		if (!bytes)
			return -EBADMSG;
		data = (struct mt_dwarf_cursor){ .pos = bytes, .end = bytes + len };
		if (read_augmentation(source, letters + 1, &data, &cie) < 0)
			return -EBADMSG;
	} else if (*letters) {
		return -EBADMSG;
	}
	if (cur.failed)
		return -EBADMSG;
	cie.instructions = cur;
	*ret = cie;
	return 0;
}

int mt_fde_read(const struct mt_cfi_source *source, const struct mt_cfi_raw_entry *entry,
		const struct mt_cie *cie, struct mt_fde *ret)
{
	struct mt_dwarf_cursor cur = entry->rest;
	uint64_t start, len;
	int r;

	r = mt_cfi_pointer_read(&source->section, &cur, cie->pointer_encoding, source->got_vaddr,
				&start);
	if (r < 0)
		return r;
	/* The length has the form of the start, but is relative to nothing. */
	r = read_value(&source->section, &cur, cie->pointer_encoding & 0x0f, &len);
	if (r < 0)
		return r;
	if (cie->has_length)
		mt_dwarf_bytes(&cur, mt_dwarf_uleb(&cur));
	if (cur.failed || start + len < start)
		return -EBADMSG;
	*ret = (struct mt_fde){ .start = start, .end = start + len, .instructions = cur };
	return 0;
}
