/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_cfi.c - no file and no stack makes the unwinder crash, or its two loops disagree, or
 * what it knows of chains from before
 *
 * An input is an ELF file; if its first byte is 'E' or 'D', the rest is the .eh_frame or
 * the .debug_frame of one.  Its last bytes are also the words of the stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/cfi_entry.h"
#include "collector/unwind.h"
#include "tests/cfi_bytes.h"
#include "tests/fuzz/fuzz.h"
#include "wire/reference.h"

#define STACK 0x7fff00000fc0
#define WORDS 64
#define FDES 64
/* So many nodes are a tree of a few MiB. */
#define TREE_NODES (1u << 16)

static struct mt_unwinder *unwinder;
static struct mt_call_tree tree;
static struct mt_unwind_full full;

static void must(int good)
{
	if (!good)
		abort();
}

static void check_rule(const struct mt_rule *rule, const struct mt_cfi_sections *sections)
{
	const struct mt_cfi_section *in[] = { &sections->eh_frame, &sections->debug_frame };
	bool inside = false;

	must(rule->kind <= MT_RULE_REGISTER && rule->reg < _MT_REG_MAX);
	if (rule->kind != MT_RULE_EXPRESSION && rule->kind != MT_RULE_AT_EXPRESSION)
		return;
	for (int i = 0; i < 2; i++)
		inside |= in[i]->len && rule->expression >= in[i]->bytes &&
			  rule->expression + rule->expression_bytes <= in[i]->bytes + in[i]->len;
	must(inside);
}

static void find(const struct mt_cfi *cfi, uint64_t vaddr)
{
	struct mt_cfi_row row;
	int r = mt_cfi_find(cfi, vaddr, &row);

	must(r == 0 || r == -ENOENT || r == -EBADMSG);
	if (r)
		return;
	must(row.start <= vaddr && vaddr < row.end);
	for (int reg = 0; reg < _MT_REG_MAX; reg++)
		check_rule(&row.regs[reg], &cfi->sections);
	check_rule(&row.cfa, &cfi->sections);
	must(mt_cfi_fast(&row).kind <= MT_FAST_END);
}

static void close_unwinder(void)
{
	mt_unwinder_free(unwinder);
	unwinder = NULL;
	mt_call_tree_done(&tree);
}

/* One for many inputs: what it remembers of the others must not show. */
static void open_unwinder(void)
{
	if (unwinder && mt_call_tree_end(&tree) < TREE_NODES)
		return;
	if (unwinder)
		close_unwinder();
	must(mt_unwinder_new(&unwinder) == 0);
	must(mt_call_tree_init(&tree, UINT32_MAX) == 0);
}

static void check_chain(uint32_t id, const struct mt_trace *trace)
{
	for (size_t i = 0; i < trace->len; i++) {
		const struct mt_call_node *node;

		must(id >= MT_NODE_FIRST);
		node = mt_call_tree_node(&tree, id);
		must(!memcmp(&node->frame, &trace->frames[i], sizeof(node->frame)));
		id = node->parent;
	}
	must(id == (uint32_t)trace->stop);
}

static void unwind(const struct mt_space *space, const struct mt_window *window)
{
	static struct mt_trace slow;
	const struct mt_trace *trace;
	uint32_t node, again;

	must(mt_unwind(unwinder, space, window, &tree, &node) == 0);
	must(mt_unwind(unwinder, space, window, &tree, &again) == 0 && node == again);
	must(mt_unwind_trace(unwinder, space, window, &trace) == 0);
	must(mt_unwind_full(&full, space, window, &slow) == 0);
	must(trace->stop != MT_STOP_NONE && trace->stop == slow.stop && trace->len == slow.len);
	must(!memcmp(trace->frames, slow.frames, trace->len * sizeof(slow.frames[0])));
	check_chain(node, trace);
}

/* A stack whose words come from the input, some of them as addresses of code or stack. */
static void unwind_from(const struct mt_space *space, const uint64_t *starts, size_t len,
			const uint8_t *bytes, size_t bytes_len)
{
	uint64_t words[WORDS];
	struct mt_window window = {
		.start = STACK,
		.end = STACK + 8 * WORDS,
		.words = words,
		.mask = WORDS - 1,
	};

	for (size_t i = 0; i < WORDS; i++) {
		uint8_t byte = bytes_len ? bytes[(bytes_len - 1 - i % bytes_len)] : 0;

		if (byte < 0x80)
			words[i] = starts[byte % len] + byte % 5;
		else
			words[i] = byte == 0xff ? 0 : STACK + 8 * (uint64_t)(byte - 0x80);
	}
	for (size_t i = 0; i < len; i++) {
		words[(STACK / 8 + MT_SAVED_RIP) & window.mask] = starts[i] + 1 + i % 9;
		window.bottom = i & 1;
		unwind(space, &window);
	}
}

/* The starts of the first functions; there is always one. */
static size_t find_starts(const struct mt_cfi_source *source, uint64_t *ret)
{
	struct mt_cfi_raw_entry entry;
	struct mt_cie cie;
	struct mt_fde fde;
	size_t len = 0;

	ret[len++] = 0x1000;
	for (size_t at = 0; len < FDES && mt_cfi_entry_read(source, at, &entry) == 0;
	     at = entry.next) {
		must(entry.next > at && entry.next <= source->section.len);
		if (!entry.is_cie && mt_cie_read(source, entry.cie, &cie) == 0 &&
		    mt_fde_read(source, &entry, &cie, &fde) == 0)
			ret[len++] = fde.start;
	}
	return len;
}

static void look_up(struct mt_image *image, const uint8_t *bytes, size_t len)
{
	const struct mt_cfi_source sources[] = {
		{ .section = image->cfi.sections.eh_frame,
		  .got_vaddr = image->cfi.sections.got_vaddr },
		{ .section = image->cfi.sections.debug_frame, .is_debug_frame = true },
	};
	struct mt_space_range range = { .end = UINT64_MAX, .image = image };
	struct mt_space space;
	uint64_t starts[FDES];
	size_t n_starts;

	mt_space_init(&space);
	must(mt_space_add(&space, &range) == 0);
	for (int i = 0; i < 2; i++) {
		n_starts = find_starts(&sources[i], starts);
		for (size_t j = 0; j < n_starts; j++)
			for (uint64_t more = 0; more < 40; more += 13)
				find(&image->cfi, starts[j] + more);
		unwind_from(&space, starts, n_starts, bytes, len);
	}
	mt_space_done(&space);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct cfi_bytes section, file;
	struct elf_parts parts = { 0 };
	struct mt_image *image;
	int r;

	open_unwinder();
	if (len && (bytes[0] == 'E' || bytes[0] == 'D') && len < CFI_BYTES_MAX / 2) {
		section.len = 0;
		cfi_put_bytes(&section, bytes + 1, len - 1);
		if (bytes[0] == 'E')
			parts.eh_frame = &section;
		else
			parts.debug_frame = &section;
		parts.with_sections = true;
		elf_put(&file, &parts);
		r = mt_image_new_memory(file.bytes, file.len, &image);
		must(r == 0);
	} else {
		r = mt_image_new_memory(bytes, len, &image);
		must(r == 0 || r == -EBADMSG);
	}
	if (r == 0) {
		look_up(image, bytes, len);
		mt_image_unref(image);
	}
	return 0;
}

/* Instructions of all kinds, in short functions, so that a stack has to pass many. */
static size_t put_functions(struct cfi_bytes *b, uint64_t *table)
{
	static const struct {
		const char *bytes;
		size_t len;
	} functions[] = {
		{ "\x41\x0e\x10\x86\x02\x43\x0d\x06", 8 },
		{ "\x0e\x10\x83\x02\x0a\x41\x0e\x08\xc3\x0b", 10 },
		{ "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", 10 },
		{ "\x07\x10", 2 },
		{ "\x0c\x03\x10\x83\x02\x2e\x08\x08\x0c", 9 },
		{ "\x16\x07\x02\x77\x10\x09\x0c\x0d\x14\x0e\x02\x15\x0f\x01", 14 },
		{ "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 13 },
		{ "\x0f\x0a\x77\x08\x12\x06\x28\x02\x00\x13\x30\x22", 12 },
		{ "\x02\x01\x03\x01\x00\x04\x01\x00\x00\x00\x12\x06\x7f\x13\x7e\x05\x0e\x03\x11\x0f"
		  "\x02",
		  21 },
	};
	size_t cies[3], n = 0;

	cies[0] = cfi_put_cie(b, b->is_debug_frame ? "" : "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cies[1] = cfi_put_cie(b, "", 0, CFI_CALL, CFI_CALL_LEN);
	cies[2] = cfi_put_cie(b, b->is_debug_frame ? "" : "zRS", 0x1b, CFI_CALL, CFI_CALL_LEN);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		uint8_t encoding = b->is_debug_frame || i % 3 == 1 ? 0 : 0x1b;

		table[2 * n] = 0x1000 + 16 * i;
		table[2 * n + 1] = cfi_put_fde(b, cies[i % 3], encoding, table[2 * n], 16,
					       functions[i].bytes, functions[i].len);
		n++;
	}
	return n;
}

void fuzz_corpus(void)
{
	static struct cfi_bytes eh_frame, debug_frame, file, raw;
	uint64_t table[2 * FDES];
	struct elf_parts parts = {
		.eh_frame = &eh_frame,
		.debug_frame = &debug_frame,
		.table = table,
		.with_sections = true,
	};

	debug_frame.is_debug_frame = true;
	put_functions(&debug_frame, table);
	eh_frame.vaddr = ELF_EH_FRAME;
	parts.table_len = put_functions(&eh_frame, table);
	cfi_put(&eh_frame, 4, 0);
	elf_put(&file, &parts);
	fuzz_try_around(file.bytes, file.len, 1);
	raw.len = 0;
	cfi_put(&raw, 1, 'E');
	cfi_put_bytes(&raw, eh_frame.bytes, eh_frame.len);
	fuzz_try_around(raw.bytes, raw.len, 1);
	raw.len = 0;
	cfi_put(&raw, 1, 'D');
	cfi_put_bytes(&raw, debug_frame.bytes, debug_frame.len);
	fuzz_try_around(raw.bytes, raw.len, 1);
	parts.table = NULL;
	parts.table_len = 0;
	elf_put(&file, &parts);
	fuzz_try_around(file.bytes, file.len, 1);
	/* They are the process's, not a leak. */
	close_unwinder();
	mt_unwind_full_done(&full);
}
