/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * cfi.h - call frame information: the rules that take a frame to its caller, for one address
 *
 * Contract
 *   Input:     the bytes of .eh_frame_hdr, .eh_frame and .debug_frame of an x86-64 file,
 *              each may be missing; any bytes at all: what they say is checked.  Addresses
 *              are ELF virtual addresses.
 *   Ownership: sections are borrowed and must outlive the object; a row's expressions point
 *              into them.
 *   Errors:    -ENOENT: no entry covers the address; -EBADMSG: the entry that does is
 *              malformed or of an unknown kind; -ENOMEM.  *ret is written on success only.
 *   Threads:   any number may look up at once: an object does not change once it is made.
 *   Bounds:    a look-up is a binary search and at most MT_CFI_INSTRUCTIONS instructions; an
 *              index, built only where .eh_frame_hdr has none, has 24 bytes for each entry.
 *
 * Rows are made on demand: a run meets thousands of addresses, a table of all has millions
 * of rows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one CIE or FDE.  The longest that compilers make are some 10,000. */
#define MT_CFI_INSTRUCTIONS (256 * 1024)
/* DW_CFA_remember_state within one another; compilers make 1. */
#define MT_CFI_STATES 16

/* DWARF's numbers of x86-64's registers. */
enum mt_register {
	MT_REG_RAX,
	MT_REG_RDX,
	MT_REG_RCX,
	MT_REG_RBX,
	MT_REG_RSI,
	MT_REG_RDI,
	MT_REG_RBP,
	MT_REG_RSP,
	MT_REG_R8,
	MT_REG_R9,
	MT_REG_R10,
	MT_REG_R11,
	MT_REG_R12,
	MT_REG_R13,
	MT_REG_R14,
	MT_REG_R15,
	MT_REG_RIP,
	_MT_REG_MAX,
};

/* What a register's value was in the caller; the CFA is one of the last three. */
enum mt_rule_kind {
	MT_RULE_DEFAULT,       /* not mentioned: what the psABI says of a call */
	MT_RULE_UNDEFINED,     /* not known; of rip: there is no caller */
	MT_RULE_SAME,	       /* as in this frame */
	MT_RULE_AT_CFA,	       /* *(cfa + offset) */
	MT_RULE_CFA,	       /* cfa + offset */
	MT_RULE_AT_EXPRESSION, /* *expression(cfa) */
	MT_RULE_EXPRESSION,    /* expression(cfa); of the CFA: expression() */
	MT_RULE_REGISTER,      /* reg + offset */
};

struct mt_rule {
	uint8_t kind; /* enum mt_rule_kind */
	uint8_t reg;  /* enum mt_register */
	uint16_t spare;
	uint32_t expression_bytes;
	union {
		int64_t offset;
		const uint8_t *expression;
	};
};

struct mt_cfi_row {
	uint64_t start, end; /* the addresses that it is true for */
	struct mt_rule cfa;  /* UNDEFINED, EXPRESSION or REGISTER */
	struct mt_rule regs[_MT_REG_MAX];
	bool signal; /* the frame of a signal handler's return: the caller was interrupted */
};

/*
 * What the unwinder's fast loop knows.  In all kinds the return address is at cfa - 8, and
 * the caller's rbp at cfa + 8 * rbp, or the same if that is 0; but for CFA_AT_RBP, where
 * it is at rbp itself (GCC's functions that align their stack).
 */
enum mt_fast_kind {
	MT_FAST_FULL,	    /* none of the others: the full evaluator's */
	MT_FAST_RSP,	    /* cfa = rsp + 8 * cfa */
	MT_FAST_RBP,	    /* cfa = rbp + 8 * cfa */
	MT_FAST_CFA_AT_RBP, /* cfa = *(rbp + 8 * cfa) */
	MT_FAST_END,	    /* there is no caller */
	MT_FAST_NO_CFI,	    /* no row: try the frame pointer */
	MT_FAST_NO_MODULE,  /* in no module: likewise */
	MT_FAST_BAD,	    /* the row could not be made */
};

struct mt_fast_row {
	uint8_t kind; /* enum mt_fast_kind */
	int8_t rbp;
	int16_t cfa;
};

struct mt_cfi_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr; /* of bytes[0] */
};

struct mt_cfi_sections {
	struct mt_cfi_section eh_frame_hdr, eh_frame, debug_frame;
	uint64_t got_vaddr; /* what data-relative pointers of .eh_frame are relative to; 0: none */
};

/* Where an entry of an index leads; sorted by start. */
struct mt_cfi_entry {
	uint64_t start, end;
	size_t offset; /* of the FDE in its section */
};

struct mt_cfi_index {
	struct mt_cfi_entry *entries;
	size_t len;
};

/* The table in .eh_frame_hdr: pairs of an address and its FDE's, sorted by the first. */
struct mt_cfi_table {
	const uint8_t *bytes;
	size_t len;	    /* in pairs */
	uint64_t base;	    /* added to each number */
	unsigned int width; /* of a number: 4 or 8 */
	bool is_signed;
};

struct mt_cfi {
	struct mt_cfi_sections sections;
	struct mt_cfi_table table; /* len 0: use eh_index */
	struct mt_cfi_index eh_index, debug_index;
};

/* mt_cfi_done() takes an object that is all zero. */
int mt_cfi_init(struct mt_cfi *cfi, const struct mt_cfi_sections *sections);
void mt_cfi_done(struct mt_cfi *cfi);

int mt_cfi_find(const struct mt_cfi *cfi, uint64_t vaddr, struct mt_cfi_row *ret);

/* FULL, RSP, RBP, CFA_AT_RBP or END. */
struct mt_fast_row mt_cfi_fast(const struct mt_cfi_row *row);

/* Where .eh_frame begins, as .eh_frame_hdr says; -ENOENT if it does not. */
int mt_cfi_eh_frame_vaddr(const struct mt_cfi_section *eh_frame_hdr, uint64_t *ret);
