/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_cfi.c - collector/cfi.h on sections that are made here, byte by byte
 *
 * Sections end where an unreadable page begins, so that a read past the end is a crash.
 * tests/oracle/cfi_oracle.c has the sections of real files.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/cfi.h"
#include "collector/cfi_entry.h"
#include "tests/cfi_bytes.h"

#define START 0x1000
#define SIZE 0x100
#define VADDR 0x4000

static struct cfi_bytes section;
static struct mt_cfi cfi;

static void setup(void)
{
	section.len = 0;
	section.is_debug_frame = false;
	section.vaddr = VADDR;
}

static void teardown(void)
{
	mt_cfi_done(&cfi);
}

static struct mt_cfi_section as_section(const struct cfi_bytes *b, size_t len)
{
	return (struct mt_cfi_section){
		.bytes = cfi_at_page_end(b->bytes, len),
		.len = len,
		.vaddr = b->vaddr,
	};
}

static void open_section(void)
{
	struct mt_cfi_sections sections = { 0 };

	mt_cfi_done(&cfi);
	if (section.is_debug_frame)
		sections.debug_frame = as_section(&section, section.len);
	else
		sections.eh_frame = as_section(&section, section.len);
	ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
}

/* One function with these instructions, at START. */
static void make(const void *instructions, size_t len)
{
	size_t cie;

	section.len = 0;
	cie = cfi_put_cie(&section, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&section, cie, 0x1b, START, SIZE, instructions, len);
	open_section();
}

static struct mt_cfi_row row_at(uint64_t vaddr)
{
	struct mt_cfi_row row;

	ck_assert_int_eq(mt_cfi_find(&cfi, vaddr, &row), 0);
	return row;
}

static void expect_cfa(const struct mt_cfi_row *row, unsigned int reg, int64_t offset)
{
	ck_assert_uint_eq(row->cfa.kind, MT_RULE_REGISTER);
	ck_assert_uint_eq(row->cfa.reg, reg);
	ck_assert_int_eq(row->cfa.offset, offset);
}

START_TEST(function_without_instructions)
{
	struct mt_cfi_row row;

	make("", 0);
	row = row_at(START);
	expect_cfa(&row, MT_REG_RSP, 8);
	ck_assert_uint_eq(row.regs[MT_REG_RIP].kind, MT_RULE_AT_CFA);
	ck_assert_int_eq(row.regs[MT_REG_RIP].offset, -8);
	ck_assert_uint_eq(row.regs[MT_REG_RBX].kind, MT_RULE_DEFAULT);
	ck_assert_uint_eq(row.start, START);
	ck_assert_uint_eq(row.end, START + SIZE);
	ck_assert(!row.signal);
	row_at(START + SIZE - 1);
	ck_assert_int_eq(mt_cfi_find(&cfi, START - 1, &row), -ENOENT);
	ck_assert_int_eq(mt_cfi_find(&cfi, START + SIZE, &row), -ENOENT);
	ck_assert_int_eq(mt_cfi_find(&cfi, 0, &row), -ENOENT);
	ck_assert_int_eq(mt_cfi_find(&cfi, UINT64_MAX, &row), -ENOENT);
}
END_TEST

/* What an instruction does to a register's rule. */
static const struct {
	const char *bytes;
	size_t len;
	unsigned int reg;
	enum mt_rule_kind kind;
	int64_t offset;
} register_instructions[] = {
	{ "\x83\x02", 2, MT_REG_RBX, MT_RULE_AT_CFA, -16 },	 /* offset */
	{ "\x05\x0c\x03", 3, MT_REG_R12, MT_RULE_AT_CFA, -24 },	 /* offset_extended */
	{ "\x11\x0c\x7e", 3, MT_REG_R12, MT_RULE_AT_CFA, 16 },	 /* offset_extended_sf */
	{ "\x2f\x06\x02", 3, MT_REG_RBP, MT_RULE_AT_CFA, 16 },	 /* GNU_negative_offset_extended */
	{ "\x14\x07\x01", 3, MT_REG_RSP, MT_RULE_CFA, -8 },	 /* val_offset */
	{ "\x15\x07\x7f", 3, MT_REG_RSP, MT_RULE_CFA, 8 },	 /* val_offset_sf */
	{ "\x07\x10", 2, MT_REG_RIP, MT_RULE_UNDEFINED, 0 },	 /* undefined */
	{ "\x08\x00", 2, MT_REG_RAX, MT_RULE_SAME, 0 },		 /* same_value */
	{ "\x09\x10\x05", 3, MT_REG_RIP, MT_RULE_REGISTER, 0 },	 /* register */
	{ "\x09\x10\x11", 3, MT_REG_RIP, MT_RULE_UNDEFINED, 0 }, /* from one not tracked */
	{ "\x07\x10\xd0", 3, MT_REG_RIP, MT_RULE_AT_CFA, -8 },	 /* restore */
	{ "\x07\x10\x06\x10", 4, MT_REG_RIP, MT_RULE_AT_CFA, -8 }, /* restore_extended */
	{ "\x83\x02\xc3", 3, MT_REG_RBX, MT_RULE_DEFAULT, 0 },	   /* restore to nothing */
	{ "\x0a\x83\x02\x0b", 4, MT_REG_RBX, MT_RULE_DEFAULT, 0 }, /* remember, restore_state */
	{ "\x91\x02\xd1\x07\x20\x16\x21\x01\x30", 9, MT_REG_RAX, MT_RULE_DEFAULT, 0 },
	{ "\x00\x2e\x40\x83\x02", 5, MT_REG_RBX, MT_RULE_AT_CFA, -16 }, /* nop, GNU_args_size */
};

START_TEST(instruction_of_a_register)
{
	const typeof(*register_instructions) *i = &register_instructions[_i];
	const struct mt_rule *rule;
	struct mt_cfi_row row;

	make(i->bytes, i->len);
	row = row_at(START);
	rule = &row.regs[i->reg];
	ck_assert_uint_eq(rule->kind, i->kind);
	ck_assert_int_eq(rule->offset, i->offset);
	if (i->kind == MT_RULE_REGISTER)
		ck_assert_uint_eq(rule->reg, MT_REG_RDI);
	expect_cfa(&row, MT_REG_RSP, 8);
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	unsigned int reg;
	int64_t offset;
} cfa_instructions[] = {
	{ "\x0c\x06\x90\x01", 4, MT_REG_RBP, 144 },		   /* def_cfa */
	{ "\x0d\x06", 2, MT_REG_RBP, 8 },			   /* def_cfa_register */
	{ "\x0e\x40", 2, MT_REG_RSP, 64 },			   /* def_cfa_offset */
	{ "\x12\x06\x7d", 3, MT_REG_RBP, 24 },			   /* def_cfa_sf */
	{ "\x13\x7c", 2, MT_REG_RSP, 32 },			   /* def_cfa_offset_sf */
	{ "\x0e\x38\x0f\x02\x77\x08\x0d\x07", 8, MT_REG_RSP, 56 }, /* as OpenSSL has it */
};

START_TEST(instruction_of_the_cfa)
{
	struct mt_cfi_row row;

	make(cfa_instructions[_i].bytes, cfa_instructions[_i].len);
	row = row_at(START);
	expect_cfa(&row, cfa_instructions[_i].reg, cfa_instructions[_i].offset);
}
END_TEST

START_TEST(expressions)
{
	struct mt_cfi_row row;

	/* def_cfa_expression; expression of rbp; val_expression of rip */
	make("\x0f\x02\x77\x10"
	     "\x10\x06\x02\x76\x00"
	     "\x16\x10\x01\x30",
	     13);
	row = row_at(START);
	ck_assert_uint_eq(row.cfa.kind, MT_RULE_EXPRESSION);
	ck_assert_uint_eq(row.cfa.expression_bytes, 2);
	ck_assert_mem_eq(row.cfa.expression, "\x77\x10", 2);
	ck_assert_uint_eq(row.regs[MT_REG_RBP].kind, MT_RULE_AT_EXPRESSION);
	ck_assert_mem_eq(row.regs[MT_REG_RBP].expression, "\x76\x00", 2);
	ck_assert_uint_eq(row.regs[MT_REG_RIP].kind, MT_RULE_EXPRESSION);
	ck_assert_uint_eq(row.regs[MT_REG_RIP].expression_bytes, 1);

	/* A register that is not tracked. */
	make("\x0c\x21\x08", 3);
	row = row_at(START);
	ck_assert_uint_eq(row.cfa.kind, MT_RULE_UNDEFINED);
}
END_TEST

/* Each way to advance, from START to START + 0x10, where rsp + 16 begins. */
static const struct {
	const char *bytes;
	size_t len;
} advances[] = {
	{ "\x50\x0e\x10", 3 },
	{ "\x02\x10\x0e\x10", 4 },
	{ "\x03\x10\x00\x0e\x10", 5 },
	{ "\x04\x10\x00\x00\x00\x0e\x10", 7 },
	{ "\x1d\x10\x00\x00\x00\x00\x00\x00\x00\x0e\x10", 11 },
	{ "\x48\x48\x0e\x10", 4 },
	{ "\x40\x50\x0e\x10", 4 },
};

START_TEST(advance)
{
	struct mt_cfi_row row;

	make(advances[_i].bytes, advances[_i].len);
	row = row_at(START + 0xf);
	expect_cfa(&row, MT_REG_RSP, 8);
	ck_assert_uint_ge(row.start, START);
	ck_assert_uint_eq(row.end, START + 0x10);
	row = row_at(START + 0x10);
	expect_cfa(&row, MT_REG_RSP, 16);
	ck_assert_uint_eq(row.start, START + 0x10);
	ck_assert_uint_eq(row.end, START + SIZE);
}
END_TEST

/* Its operand is relative to its own place, as the CIE says. */
static void put_set_location(uint64_t to)
{
	uint8_t instructions[] = { 0x01, 0, 0, 0, 0, 0x0e, 0x10 };
	uint32_t relative;
	size_t cie;

	setup();
	cie = cfi_put_cie(&section, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	relative = (uint32_t)(to - (VADDR + section.len + 4 + 4 + 4 + 4 + 1 + 1));
	memcpy(instructions + 1, &relative, 4);
	cfi_put_fde(&section, cie, 0x1b, START, SIZE, instructions, sizeof(instructions));
	open_section();
}

START_TEST(set_location)
{
	struct mt_cfi_row row;

	put_set_location(START + 0x20);
	row = row_at(START + 0x1f);
	expect_cfa(&row, MT_REG_RSP, 8);
	row = row_at(START + 0x20);
	expect_cfa(&row, MT_REG_RSP, 16);
	put_set_location(START - 1);
	ck_assert_int_eq(mt_cfi_find(&cfi, START, &row), -EBADMSG);
}
END_TEST

/* What can not be run; after 0x20 bytes of code, so that the rows before can. */
static const struct {
	const char *bytes;
	size_t len;
} bad_instructions[] = {
	{ "\x0b", 1 },		   /* restore_state of nothing */
	{ "\x2d", 1 },		   /* GNU_window_save */
	{ "\x17", 1 },		   /* unknown */
	{ "\x3f\x00", 2 },	   /* unknown */
	{ "\x0f\x7f\x77\x08", 4 }, /* an expression that is longer than the entry */
	{ "\x10\x06\xff\x01", 4 }, /* likewise */
	{ "\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },	    /* of 2^64 - 1 bytes */
	{ "\x05\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 12 }, /* LEB128 of 65 bits */
	{ "\x05\x06\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 13 },
	{ "\x1d\xff\xff\xff\xff\xff\xff\xff\xff", 9 }, /* advances over the end of memory */
};

START_TEST(bad_instruction)
{
	uint8_t instructions[32] = { 0x60 };
	struct mt_cfi_row row;

	memcpy(instructions + 1, bad_instructions[_i].bytes, bad_instructions[_i].len);
	make(instructions, 1 + bad_instructions[_i].len);
	row_at(START + 0x1f);
	ck_assert_int_eq(mt_cfi_find(&cfi, START + 0x20, &row), -EBADMSG);
}
END_TEST

START_TEST(instructions_of_a_cie)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = { { "\xc3", 1 }, { "\x06\x03", 2 }, { "\x41", 1 }, { "\x01\0\0\0\0", 5 } };
	struct mt_cfi_row row;
	size_t cie;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		section.len = 0;
		cie = cfi_put_cie(&section, "zR", 0x1b, bad[i].bytes, bad[i].len);
		cfi_put_fde(&section, cie, 0x1b, START, SIZE, "", 0);
		open_section();
		ck_assert_int_eq(mt_cfi_find(&cfi, START, &row), -EBADMSG);
	}
}
END_TEST

START_TEST(states)
{
	char instructions[2 * (MT_CFI_STATES + 1) + 3];
	struct mt_cfi_row row;
	size_t len = 0;

	for (int i = 0; i < MT_CFI_STATES; i++)
		instructions[len++] = 0x0a;
	memcpy(instructions + len, "\x0e\x40", 2);
	len += 2;
	for (int i = 0; i < MT_CFI_STATES; i++)
		instructions[len++] = 0x0b;
	make(instructions, len);
	row = row_at(START);
	expect_cfa(&row, MT_REG_RSP, 8);

	memset(instructions, 0x0a, MT_CFI_STATES + 1);
	make(instructions, MT_CFI_STATES + 1);
	ck_assert_int_eq(mt_cfi_find(&cfi, START, &row), -EBADMSG);
}
END_TEST

START_TEST(too_many_instructions)
{
	uint8_t *nops = calloc(1, MT_CFI_INSTRUCTIONS + 8);
	struct mt_cfi_row row;

	ck_assert_ptr_nonnull(nops);
	make(nops, MT_CFI_INSTRUCTIONS - 8);
	row_at(START);
	make(nops, MT_CFI_INSTRUCTIONS + 8);
	ck_assert_int_eq(mt_cfi_find(&cfi, START, &row), -EBADMSG);
	free(nops);
}
END_TEST

static const struct {
	uint8_t encoding;
	const char *bytes;
	size_t len;
	uint64_t base;
	int result;
	uint64_t value;
} pointers[] = {
	{ 0x00, "\x08\x07\x06\x05\x04\x03\x02\x01", 8, 0, 0, 0x0102030405060708 },
	{ 0x04, "\x08\x07\x06\x05\x04\x03\x02\x81", 8, 0, 0, 0x8102030405060708 },
	{ 0x0c, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0, 0, UINT64_MAX },
	{ 0x01, "\xe5\x8e\x26", 3, 0, 0, 624485 },
	{ 0x09, "\x80\x7f", 2, 0, 0, (uint64_t)-128 },
	{ 0x02, "\xfe\xff", 2, 0, 0, 0xfffe },
	{ 0x0a, "\xfe\xff", 2, 0, 0, (uint64_t)-2 },
	{ 0x03, "\xfe\xff\xff\xff", 4, 0, 0, 0xfffffffe },
	{ 0x0b, "\xfe\xff\xff\xff", 4, 0, 0, (uint64_t)-2 },
	{ 0x10, "\x01\0\0\0\0\0\0\0", 8, 0, 0, VADDR + 4 },
	{ 0x1b, "\xf0\xff\xff\xff", 4, 0, 0, VADDR + 3 - 16 },
	{ 0x3b, "\x10\0\0\0", 4, 0x5000, 0, 0x5010 },
	{ 0x3b, "\x10\0\0\0", 4, 0, -EBADMSG, 0 },		  /* relative to nothing */
	{ 0x50, "\0\0\0\0\0\x11\0\0\0\0\0\0\0", 13, 0, 0, 0x11 }, /* aligned */
	{ 0x2b, "\x10\0\0\0", 4, 0x5000, -EBADMSG, 0 },		  /* text-relative */
	{ 0x4b, "\x10\0\0\0", 4, 0x5000, -EBADMSG, 0 },		  /* function-relative */
	{ 0x9b, "\x10\0\0\0", 4, 0x5000, -EBADMSG, 0 },		  /* indirect */
	{ 0xff, "\x10\0\0\0\0\0\0\0", 8, 0x5000, -EBADMSG, 0 },	  /* omitted */
	{ 0x05, "\x10\0\0\0\0\0\0\0", 8, 0x5000, -EBADMSG, 0 },	  /* unknown */
	{ 0x70, "\x10\0\0\0\0\0\0\0", 8, 0x5000, -EBADMSG, 0 },	  /* unknown */
};

/* Behind three bytes of something else; then with each number of bytes too few. */
START_TEST(one_pointer)
{
	size_t len = pointers[_i].len;
	struct mt_cfi_section at;
	struct mt_dwarf_cursor cur;
	uint64_t value = 0;

	cfi_put_bytes(&section, "abc", 3);
	cfi_put_bytes(&section, pointers[_i].bytes, len);
	at = as_section(&section, section.len);
	cur = (struct mt_dwarf_cursor){ .pos = at.bytes + 3, .end = at.bytes + at.len };
	ck_assert_int_eq(
		mt_cfi_pointer_read(&at, &cur, pointers[_i].encoding, pointers[_i].base, &value),
		pointers[_i].result);
	ck_assert_uint_eq(value, pointers[_i].value);
	if (pointers[_i].result)
		return;
	ck_assert_ptr_eq(cur.pos, cur.end);
	for (size_t less = 0; less < len; less++) {
		at = as_section(&section, 3 + less);
		cur = (struct mt_dwarf_cursor){ .pos = at.bytes + 3, .end = at.bytes + at.len };
		ck_assert_int_eq(mt_cfi_pointer_read(&at, &cur, pointers[_i].encoding,
						     pointers[_i].base, &value),
				 -EBADMSG);
	}
}
END_TEST

/* A CIE from its version on, and whether it is one. */
static const struct {
	const char *bytes;
	size_t len;
	int result;
} cies[] = {
	{ "\x01\0\x01\x78\x10", 5, 0 },
	{ "\x03\0\x01\x78\x10", 5, 0 },
	{ "\x04\0\x08\x00\x01\x78\x10", 7, 0 },
	{ "\x04\0\x04\x00\x01\x78\x10", 7, -EBADMSG }, /* addresses of 4 bytes */
	{ "\x04\0\x08\x01\x01\x78\x10", 7, -EBADMSG }, /* segments */
	{ "\x02\0\x01\x78\x10", 5, -EBADMSG },	       /* version */
	{ "\x05\0\x01\x78\x10", 5, -EBADMSG },
	{ "\x01\0\x01\x78\x11", 5, -EBADMSG }, /* return address elsewhere */
	{ "\x01zR\0\x01\x78\x10\x01\x1b", 9, 0 },
	{ "\x01zRS\0\x01\x78\x10\x01\x1b", 10, 0 },
	{ "\x01zPLR\0\x01\x78\x10\x07\x9b\0\0\0\0\x1b\x1b", 18, 0 },
	{ "\x01zPR\0\x01\x78\x10\x02\xff\x1b", 11, 0 },
	{ "\x01zRSB\0\x01\x78\x10\x03\x1b\0\0", 13, 0 }, /* longer than its letters need */
	{ "\x01zR\0\x01\x78\x10\x00\x1b", 9, -EBADMSG },
	{ "\x01zR\0\x01\x78\x10\x7f\x1b", 9, -EBADMSG },
	{ "\x01zX\0\x01\x78\x10\x01\x1b", 9, -EBADMSG }, /* unknown letter */
	{ "\x01zPR\0\x01\x78\x10\x06\x05\0\0\0\0\x1b", 15, -EBADMSG },
	{ "\x01R\0\x01\x78\x10\x01\x1b", 8, -EBADMSG },
	{ "\x01"
	  "eh\0\0\0\0\0\0\0\0\0\x01\x78\x10",
	  15, -EBADMSG },
	{ "\x01zRRRRRRR\0\x01\x78\x10\x07\x1b\x1b\x1b\x1b\x1b\x1b\x1b", 21, 0 },
	{ "\x01zRRRRRRRR\0\x01\x78\x10\x07\x1b\x1b\x1b\x1b\x1b\x1b\x1b", 22, -EBADMSG },
};

START_TEST(one_cie)
{
	struct mt_cfi_source source = { 0 };
	struct mt_cie ret;

	cfi_put(&section, 4, cies[_i].len + 4);
	cfi_put(&section, 4, 0);
	cfi_put_bytes(&section, cies[_i].bytes, cies[_i].len);
	source.section = as_section(&section, section.len);
	ck_assert_int_eq(mt_cie_read(&source, 0, &ret), cies[_i].result);
	if (cies[_i].result)
		return;
	ck_assert_int_eq(ret.data_align, -8);
	ck_assert_uint_eq(ret.signal, !!memchr(cies[_i].bytes, 'S', 6));
	/* Cut, with a length that says so and with one that does not. */
	for (size_t len = 0; len < section.len; len++) {
		uint32_t short_len = len > 4 ? (uint32_t)len - 4 : 0;

		source.section = as_section(&section, len);
		ck_assert_int_eq(mt_cie_read(&source, 0, &ret), -EBADMSG);
		if (len >= 4)
			memcpy((uint8_t *)source.section.bytes, &short_len, 4);
		mt_cie_read(&source, 0, &ret);
	}
	ck_assert_int_eq(mt_cie_read(&source, 1 << 20, &ret), -EBADMSG);
}
END_TEST

START_TEST(long_entries)
{
	struct mt_cfi_row row;

	/* A CIE and an FDE with lengths of 64 bits; .eh_frame's CIE pointers remain short. */
	cfi_put(&section, 4, 0xffffffff);
	cfi_put(&section, 8, 4 + 5 + CFI_CALL_LEN);
	cfi_put(&section, 4, 0);
	cfi_put_bytes(&section, "\x01\0\x01\x78\x10" CFI_CALL, 5 + CFI_CALL_LEN);
	cfi_put(&section, 4, 0xffffffff);
	cfi_put(&section, 8, 4 + 16);
	cfi_put(&section, 4, section.len);
	cfi_put(&section, 8, START);
	cfi_put(&section, 8, SIZE);
	open_section();
	row = row_at(START);
	expect_cfa(&row, MT_REG_RSP, 8);

	setup();
	section.is_debug_frame = true;
	cfi_put(&section, 4, 0xffffffff);
	cfi_put(&section, 8, 8 + 5 + CFI_CALL_LEN);
	cfi_put(&section, 8, UINT64_MAX);
	cfi_put_bytes(&section, "\x01\0\x01\x78\x10" CFI_CALL, 5 + CFI_CALL_LEN);
	cfi_put(&section, 4, 0xffffffff);
	cfi_put(&section, 8, 8 + 16);
	cfi_put(&section, 8, 0);
	cfi_put(&section, 8, START);
	cfi_put(&section, 8, SIZE);
	open_section();
	row = row_at(START);
	expect_cfa(&row, MT_REG_RSP, 8);
}
END_TEST

/* Several functions, out of order, with a hole and a dropped one (at 0). */
static void put_functions(uint64_t *table)
{
	size_t plain = cfi_put_cie(&section, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	size_t absolute, signal;

	table[2] = 0x1100;
	table[3] = cfi_put_fde(&section, plain, 0x1b, 0x1100, 0x80, "\x44\x0e\x18\x86\x02", 5);
	table[0] = 0x1000;
	table[1] = cfi_put_fde(&section, plain, 0x1b, 0x1000, 0x100, "\x41\x0e\x10\x0a\x41\x0b", 6);
	absolute = cfi_put_cie(&section, "", 0, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&section, absolute, 0, 0, 0x1000, "", 0);
	signal = cfi_put_cie(&section, "zRS", 0x1b, CFI_CALL, CFI_CALL_LEN);
	table[4] = 0x1200;
	table[5] = cfi_put_fde(&section, signal, 0x1b, 0x1200, 0x10, "\x0f\x03\x77\xa0\x01", 5);
	cfi_put(&section, 4, 0);
}

static struct cfi_bytes hdr;

static void put_hdr(const char *head, unsigned int width, uint64_t base, const uint64_t *table)
{
	hdr.len = 0;
	hdr.vaddr = 0x3000;
	cfi_put_bytes(&hdr, head, 4);
	cfi_put(&hdr, 4, VADDR - (0x3000 + 4));
	cfi_put(&hdr, 4, 3);
	for (int i = 0; i < 3; i++) {
		cfi_put(&hdr, width, table[2 * i] - base);
		cfi_put(&hdr, width, VADDR + table[2 * i + 1] - base);
	}
}

static void expect_functions(void)
{
	struct mt_cfi_row row;

	row = row_at(0x1000);
	expect_cfa(&row, MT_REG_RSP, 8);
	row = row_at(0x1001);
	expect_cfa(&row, MT_REG_RSP, 16);
	row = row_at(0x1104);
	expect_cfa(&row, MT_REG_RSP, 24);
	ck_assert_uint_eq(row.regs[MT_REG_RBP].kind, MT_RULE_AT_CFA);
	ck_assert_int_eq(mt_cfi_find(&cfi, 0x1180, &row), -ENOENT);
	ck_assert_int_eq(mt_cfi_find(&cfi, 0x800, &row), -ENOENT);
	row = row_at(0x120f);
	ck_assert(row.signal);
	ck_assert_int_eq(mt_cfi_find(&cfi, 0x1210, &row), -ENOENT);
}

/* By a table of each kind that is searched, and by the index where it is not. */
START_TEST(tables)
{
	static const struct {
		const char *head;
		unsigned int width;
		uint64_t base;
		bool searched;
	} heads[] = {
		{ "\x01\x1b\x03\x3b", 4, 0x3000, true },  { "\x01\x1b\x03\x33", 4, 0, true },
		{ "\x01\x1b\x03\x3c", 8, 0x3000, true },  { "\x01\x1b\x03\x03", 4, 0, true },
		{ "\x01\x1b\x03\x00", 8, 0, true },	  { "\x01\x1b\xff\x3b", 4, 0x3000, false },
		{ "\x01\x1b\x03\xff", 4, 0, false },	  { "\x02\x1b\x03\x3b", 4, 0x3000, false },
		{ "\x01\xff\x03\x3b", 4, 0x3000, false }, { "\x01\x1b\x03\x1b", 4, 0, false },
		{ "\x01\x1b\x03\x31", 4, 0, false },	  { "\x01\x1b\x9b\x3b", 4, 0x3000, false },
	};
	uint64_t table[6];
	struct mt_cfi_sections sections = { 0 };

	put_functions(table);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		uint64_t base = heads[i].base;

		/* Unsigned numbers relative to the table's end of memory wrap. */
		put_hdr(heads[i].head, heads[i].width, base, table);
		if (heads[i].head[3] == '\x33')
			put_hdr(heads[i].head, heads[i].width, 0x3000 - (1ULL << 32), table);
		sections.eh_frame = as_section(&section, section.len);
		sections.eh_frame_hdr = (struct mt_cfi_section){ hdr.bytes, hdr.len, hdr.vaddr };
		mt_cfi_done(&cfi);
		ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
		ck_assert_int_eq(cfi.table.len != 0, heads[i].searched);
		ck_assert_int_eq(cfi.eh_index.len != 0, !heads[i].searched);
		if (heads[i].head[3] != '\x33')
			expect_functions();
	}
}
END_TEST

/* A table that lies gives fewer rows, not others. */
START_TEST(lying_tables)
{
	uint64_t table[6], lie[6];
	struct mt_cfi_sections sections = { 0 };
	struct mt_cfi_row row, good;
	uint64_t vaddr;
	struct mt_cfi honest = { 0 };

	put_functions(table);
	sections.eh_frame = as_section(&section, section.len);
	ck_assert_int_eq(mt_cfi_init(&honest, &sections), 0);
	for (int i = 0; i < 6 * 40; i++) {
		memcpy(lie, table, sizeof(lie));
		lie[i % 6] += (uint64_t)(i / 6 * 8) - 80;
		put_hdr("\x01\x1b\x03\x3b", 4, 0x3000, lie);
		if (i % 7 == 0)
			memset(hdr.bytes + 8, 0xff, 4);
		sections.eh_frame_hdr = (struct mt_cfi_section){ hdr.bytes, hdr.len, hdr.vaddr };
		mt_cfi_done(&cfi);
		ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
		for (vaddr = 0xf00; vaddr < 0x1300; vaddr += 4) {
			if (mt_cfi_find(&cfi, vaddr, &row) < 0)
				continue;
			ck_assert_int_eq(mt_cfi_find(&honest, vaddr, &good), 0);
			ck_assert_uint_eq(row.start, good.start);
			ck_assert_int_eq(row.cfa.offset, good.cfa.offset);
		}
	}
	mt_cfi_done(&honest);
}
END_TEST

START_TEST(every_truncation)
{
	uint64_t table[6];
	struct mt_cfi_sections sections = { 0 };
	struct mt_cfi_row row;
	size_t whole;

	put_functions(table);
	put_hdr("\x01\x1b\x03\x3b", 4, 0x3000, table);
	whole = hdr.len;
	for (size_t len = 0; len <= section.len; len++) {
		sections.eh_frame = as_section(&section, len);
		sections.eh_frame_hdr = (struct mt_cfi_section){ 0 };
		mt_cfi_done(&cfi);
		ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
		for (uint64_t vaddr = 0x1000; vaddr < 0x1300; vaddr += 16)
			mt_cfi_find(&cfi, vaddr, &row);
		sections.eh_frame_hdr = (struct mt_cfi_section){ hdr.bytes, whole, hdr.vaddr };
		mt_cfi_done(&cfi);
		ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
		for (uint64_t vaddr = 0x1000; vaddr < 0x1300; vaddr += 16)
			mt_cfi_find(&cfi, vaddr, &row);
	}
	sections.eh_frame = (struct mt_cfi_section){ section.bytes, section.len, VADDR };
	for (size_t len = 0; len <= whole; len++) {
		sections.eh_frame_hdr = as_section(&hdr, len);
		mt_cfi_done(&cfi);
		ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
		for (uint64_t vaddr = 0x1000; vaddr < 0x1300; vaddr += 16)
			mt_cfi_find(&cfi, vaddr, &row);
	}
	expect_functions();
}
END_TEST

/* .eh_frame is asked first, .debug_frame where that has nothing. */
START_TEST(both_sections)
{
	static struct cfi_bytes debug = { .is_debug_frame = true };
	struct mt_cfi_sections sections = { 0 };
	struct mt_cfi_row row;
	size_t cie;

	cie = cfi_put_cie(&section, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&section, cie, 0x1b, 0x1000, 0x10, "\x0e\x20", 2);
	cie = cfi_put_cie(&debug, "", 0, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&debug, cie, 0, 0x1000, 0x20, "\x0e\x30", 2);
	sections.eh_frame = as_section(&section, section.len);
	sections.debug_frame = (struct mt_cfi_section){ debug.bytes, debug.len, 0 };
	ck_assert_int_eq(mt_cfi_init(&cfi, &sections), 0);
	row = row_at(0x100f);
	expect_cfa(&row, MT_REG_RSP, 0x20);
	row = row_at(0x1010);
	expect_cfa(&row, MT_REG_RSP, 0x30);
	ck_assert_int_eq(mt_cfi_find(&cfi, 0x1020, &row), -ENOENT);
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	struct mt_fast_row row;
} fast_rows[] = {
	{ "", 0, { MT_FAST_RSP, 0, 1 } },
	{ "\x0e\x10\x86\x02", 4, { MT_FAST_RSP, -2, 2 } },
	{ "\x0e\x10\x86\x02\x0d\x06", 6, { MT_FAST_RBP, -2, 2 } },
	{ "\x0d\x06\x08\x06", 4, { MT_FAST_RBP, 0, 1 } },
	{ "\x12\x06\x02", 3, { MT_FAST_RBP, 0, -2 } },
	{ "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", 10, { MT_FAST_CFA_AT_RBP, 0, -1 } },
	{ "\x0f\x03\x76\x78\x06", 5, { MT_FAST_FULL, 0, 0 } }, /* rbp elsewhere */
	{ "\x0f\x04\x76\x78\x06\x06\x10\x06\x02\x76\x00", 11, { MT_FAST_FULL, 0, 0 } },
	{ "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x08", 10, { MT_FAST_FULL, 0, 0 } },
	{ "\x07\x10", 2, { MT_FAST_END, 0, 0 } },
	{ "\x0d\x03", 2, { MT_FAST_FULL, 0, 0 } }, /* CFA by rbx */
	{ "\x0e\x0c", 2, { MT_FAST_FULL, 0, 0 } }, /* no multiple of 8 */
	{ "\x0e\x00", 2, { MT_FAST_FULL, 0, 0 } }, /* does not grow */
	{ "\x0e\xf8\xff\x0f", 4, { MT_FAST_RSP, 0, 32767 } },
	{ "\x0e\x80\x80\x10", 4, { MT_FAST_FULL, 0, 0 } }, /* too large */
	{ "\x86\x80\x01", 3, { MT_FAST_RSP, -128, 1 } },
	{ "\x86\x81\x01", 3, { MT_FAST_FULL, 0, 0 } }, /* too far */
	{ "\x86\x00", 2, { MT_FAST_FULL, 0, 0 } },     /* rbp at the CFA itself */
	{ "\x07\x06", 2, { MT_FAST_FULL, 0, 0 } },     /* rbp is lost */
	{ "\x90\x02", 2, { MT_FAST_FULL, 0, 0 } },     /* return address elsewhere */
	{ "\x09\x10\x05", 3, { MT_FAST_FULL, 0, 0 } }, /* in a register */
	{ "\x14\x07\x01", 3, { MT_FAST_FULL, 0, 0 } }, /* rsp is not the CFA */
	{ "\x14\x07\x00", 3, { MT_FAST_RSP, 0, 1 } },
	{ "\x83\x04\x8c\x05", 4, { MT_FAST_RSP, 0, 1 } }, /* others do not matter */
};

START_TEST(fast_row)
{
	struct mt_fast_row fast;
	struct mt_cfi_row row;

	make(fast_rows[_i].bytes, fast_rows[_i].len);
	row = row_at(START);
	fast = mt_cfi_fast(&row);
	ck_assert_uint_eq(fast.kind, fast_rows[_i].row.kind);
	ck_assert_int_eq(fast.rbp, fast_rows[_i].row.rbp);
	ck_assert_int_eq(fast.cfa, fast_rows[_i].row.cfa);
	row.signal = true;
	if (fast.kind != MT_FAST_END)
		ck_assert_uint_eq(mt_cfi_fast(&row).kind, MT_FAST_FULL);
}
END_TEST

#define LEN(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
	Suite *suite = suite_create("cfi");
	TCase *tcase = tcase_create("cfi");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, function_without_instructions);
	tcase_add_loop_test(tcase, instruction_of_a_register, 0, LEN(register_instructions));
	tcase_add_loop_test(tcase, instruction_of_the_cfa, 0, LEN(cfa_instructions));
	tcase_add_test(tcase, expressions);
	tcase_add_loop_test(tcase, advance, 0, LEN(advances));
	tcase_add_test(tcase, set_location);
	tcase_add_loop_test(tcase, bad_instruction, 0, LEN(bad_instructions));
	tcase_add_test(tcase, instructions_of_a_cie);
	tcase_add_test(tcase, states);
	tcase_add_test(tcase, too_many_instructions);
	tcase_add_loop_test(tcase, one_pointer, 0, LEN(pointers));
	tcase_add_loop_test(tcase, one_cie, 0, LEN(cies));
	tcase_add_test(tcase, long_entries);
	tcase_add_test(tcase, tables);
	tcase_add_test(tcase, lying_tables);
	tcase_add_test(tcase, every_truncation);
	tcase_add_test(tcase, both_sections);
	tcase_add_loop_test(tcase, fast_row, 0, LEN(fast_rows));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
