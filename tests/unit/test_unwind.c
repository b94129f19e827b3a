/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_unwind.c - collector/unwind.h on stacks that are made here, word by word
 *
 * All code is in one module, whose functions differ in their unwind information only; see
 * the enum.  tests/unit/test_unwind_live.c has stacks of real programs.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "collector/frame_pointer.h"
#include "collector/unwind.h"
#include "tests/cfi_bytes.h"
#include "wire/reference.h"

#define BIAS 0x100000
#define STACK 0x7fff00001000
#define WORDS 64

/* ELF addresses of functions; 0x40 bytes each, the last return address is at + 0x40. */
enum {
	LEAF = 0x1000,	      /* cfa = rsp + 8 */
	FRAME = 0x1040,	      /* cfa = rsp + 32, rbp at cfa - 16 */
	BY_RBP = 0x1080,      /* cfa = rbp + 16, rbp at cfa - 16 */
	REALIGNED = 0x10c0,   /* cfa = *(rbp - 8), rbp at [rbp] */
	OUTERMOST = 0x1100,   /* no caller */
	BY_RBX = 0x1140,      /* cfa = rbx + 16, rbx at cfa - 16 */
	MALFORMED = 0x1180,   /* an instruction that there is not */
	SIGNAL = 0x11c0,      /* cfa = *(rsp + 8), rip at [rsp], all others unchanged */
	LOSES_RBP = 0x1200,   /* cfa = rsp + 8, rbp undefined */
	IN_REGISTER = 0x1240, /* return address in rbx */
	NO_RULE = 0x1280,     /* nothing is said of the return address */
	BY_VALUES = 0x12c0,   /* rsp = cfa, rbp the same, rip an expression: rbx */
	NO_CFA = 0x1300,      /* the CFA by a register that is not tracked */
	SAME_RIP = 0x1340,    /* the return address is this address */
	NO_CFI = 0x1400,
	NO_MODULE = 0x10000000,
};

static struct cfi_bytes eh_frame, file;
static struct mt_image *image;
static struct mt_space space;
static struct mt_unwinder *unwinder;
static struct mt_unwind_full full;
static struct mt_call_tree tree;
static uint64_t words[WORDS];
static struct mt_window window;
static const struct mt_trace *trace;

static void put_function(size_t cie, uint64_t start, const char *instructions, size_t len)
{
	cfi_put_fde(&eh_frame, cie, 0x1b, start, 0x40, instructions, len);
}

static void put_code(void)
{
	static const struct elf_parts parts = { .eh_frame = &eh_frame, .with_sections = true };
	size_t cie, signal, bare;

	eh_frame = (struct cfi_bytes){ .vaddr = ELF_EH_FRAME };
	cie = cfi_put_cie(&eh_frame, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	put_function(cie, LEAF, "", 0);
	put_function(cie, FRAME, "\x0e\x20\x86\x02", 4);
	put_function(cie, BY_RBP, "\x0c\x06\x10\x86\x02", 5);
	put_function(cie, REALIGNED, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", 10);
	put_function(cie, OUTERMOST, "\x07\x10", 2);
	put_function(cie, BY_RBX, "\x0c\x03\x10\x83\x02", 5);
	put_function(cie, MALFORMED, "\x3f", 1);
	put_function(cie, LOSES_RBP, "\x07\x06", 2);
	put_function(cie, IN_REGISTER, "\x09\x10\x03", 3);
	put_function(cie, BY_VALUES, "\x14\x07\x00\x08\x06\x16\x10\x02\x73\x00", 10);
	put_function(cie, NO_CFA, "\x0c\x21\x08", 3);
	put_function(cie, SAME_RIP, "\x08\x10", 2);
	signal = cfi_put_cie(&eh_frame, "zRS", 0x1b, CFI_CALL, CFI_CALL_LEN);
	/* rsp is the CFA, by default. */
	put_function(signal, SIGNAL, "\x0f\x03\x77\x08\x06\x10\x10\x02\x77\x00", 10);
	bare = cfi_put_cie(&eh_frame, "zR", 0x1b, "\x0c\x07\x08", 3);
	put_function(bare, NO_RULE, "", 0);
	elf_put(&file, &parts);
}

static void setup(void)
{
	struct mt_space_range range = { .start = BIAS, .end = BIAS + 0x6000, .bias = BIAS };

	put_code();
	ck_assert_int_eq(mt_image_new_memory(file.bytes, file.len, &image), 0);
	mt_space_init(&space);
	range.image = image;
	range.module = 5;
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	ck_assert_int_eq(mt_unwinder_new(&unwinder), 0);
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
	memset(words, 0, sizeof(words));
	window = (struct mt_window){
		.start = STACK,
		.end = STACK + 8 * WORDS,
		.words = words,
		.mask = WORDS - 1,
	};
}

static void teardown(void)
{
	mt_call_tree_done(&tree);
	mt_unwind_full_done(&full);
	mt_unwinder_free(unwinder);
	mt_space_done(&space);
	mt_image_unref(image);
}

/* A return address into a function. */
static uint64_t ret(uint64_t function)
{
	return BIAS + function + 0x10;
}

/* The address of the i-th word behind the saved ones. */
static uint64_t at(unsigned int i)
{
	return window.start + 8 * (MT_SAVED_WORDS + i);
}

static void put(uint64_t address, uint64_t word)
{
	ck_assert_uint_lt(address - window.start, 8 * WORDS);
	words[(address / 8) & window.mask] = word;
}

static void start_with(uint64_t pc, uint64_t rbp, uint64_t rbx)
{
	put(window.start + 8 * MT_SAVED_RIP, pc);
	put(window.start + 8 * MT_SAVED_RBP, rbp);
	put(window.start + 8 * MT_SAVED_RBX, rbx);
}

/* Unwinds with both, which have to agree. */
static void unwind(void)
{
	static struct mt_trace slow;

	ck_assert_int_eq(mt_unwind_trace(unwinder, &space, &window, &trace), 0);
	ck_assert_int_eq(mt_unwind_full(&full, &space, &window, &slow), 0);
	ck_assert_uint_eq(slow.stop, trace->stop);
	ck_assert_uint_eq(slow.len, trace->len);
	for (size_t i = 0; i < trace->len; i++) {
		ck_assert_uint_eq(slow.frames[i].offset, trace->frames[i].offset);
		ck_assert_uint_eq(slow.frames[i].module, trace->frames[i].module);
		ck_assert_uint_eq(slow.frames[i].exact, trace->frames[i].exact);
	}
}

static void expect(enum mt_stop stop, size_t len)
{
	unwind();
	ck_assert_uint_eq(trace->stop, stop);
	ck_assert_uint_eq(trace->len, len);
}

static void through_each(void)
{
	start_with(ret(LEAF), at(10), 0);
	put(at(0), ret(FRAME));	 /* LEAF's: cfa is at(1) */
	put(at(4), ret(BY_RBP)); /* FRAME's: cfa is at(5) */
	put(at(3), at(10));	 /* its rbp */
	put(at(10), at(20));	 /* BY_RBP's rbp: cfa is at(12) */
	put(at(11), ret(REALIGNED));
	put(at(19), at(30)); /* REALIGNED's CFA */
	put(at(20), 0x1234);
	put(at(29), ret(OUTERMOST));
	expect(MT_STOP_END, 5);
	ck_assert_uint_eq(trace->frames[0].offset, LEAF + 0x10);
	ck_assert_uint_eq(trace->frames[1].offset, FRAME + 0x10);
	ck_assert_uint_eq(trace->frames[2].offset, BY_RBP + 0x10);
	ck_assert_uint_eq(trace->frames[3].offset, REALIGNED + 0x10);
	ck_assert_uint_eq(trace->frames[4].offset, OUTERMOST + 0x10);
	ck_assert_uint_eq(trace->frames[4].module, 5);
}

START_TEST(through_each_kind)
{
	through_each();
}
END_TEST

START_TEST(through_values)
{
	start_with(ret(BY_VALUES), at(6), ret(BY_RBP));
	put(at(7), ret(OUTERMOST));
	expect(MT_STOP_END, 3);
}
END_TEST

/* Wherever in the ring of words the window begins. */
START_TEST(place_does_not_matter)
{
	for (uint64_t shift = 0; shift < 2 * WORDS; shift++) {
		window.start = STACK + 8 * shift;
		window.end = window.start + 8 * (MT_SAVED_WORDS + 30);
		through_each();
	}
}
END_TEST

START_TEST(each_end)
{
	/* A return address of 0. */
	start_with(ret(LEAF), 0, 0);
	expect(MT_STOP_END, 1);
	put(at(0), ret(MALFORMED));
	expect(MT_STOP_BAD, 2);
	put(at(0), ret(NO_CFI));
	expect(MT_STOP_NO_CFI, 2);
	put(at(0), ret(NO_MODULE));
	expect(MT_STOP_NO_MODULE, 2);
	ck_assert_uint_eq(trace->frames[1].module, MT_NO_MODULE);
	ck_assert_uint_eq(trace->frames[1].offset, ret(NO_MODULE));
	put(at(0), ret(NO_RULE));
	expect(MT_STOP_BAD, 2);
	put(at(0), ret(IN_REGISTER));
	start_with(ret(LEAF), 0, ret(OUTERMOST));
	expect(MT_STOP_END, 3);

	start_with(ret(NO_CFA), 0, 0);
	expect(MT_STOP_BAD, 1);
	start_with(ret(SAME_RIP), 0, 0);
	expect(MT_STOP_BAD, 1);

	/* The stack pointer has to move up. */
	start_with(ret(BY_RBP), at(0) - 16, 0);
	expect(MT_STOP_BAD, 1);
	start_with(ret(BY_RBP), at(0) - 8, 0);
	put(at(0), ret(OUTERMOST));
	expect(MT_STOP_END, 2);
	start_with(ret(BY_RBP), at(0) + 1, 0);
	expect(MT_STOP_BAD, 1);
	start_with(ret(BY_RBP), 0x1234, 0);
	expect(MT_STOP_BAD, 1);
	start_with(ret(BY_RBP), UINT64_MAX - 7, 0);
	expect(MT_STOP_BAD, 1);

	/* It does not begin. */
	start_with(0, 0, 0);
	expect(MT_STOP_BAD, 0);
}
END_TEST

START_TEST(cut_at_each_word)
{
	start_with(ret(FRAME), 0x10, 0);
	for (int i = 0; i < 5; i++)
		put(at((unsigned int)(4 * i + 3)), ret(FRAME));
	put(at(15), ret(OUTERMOST));
	expect(MT_STOP_END, 5);
	for (uint64_t end = STACK; end <= at(16); end += 8) {
		size_t len = end <= STACK + 8 * MT_SAVED_RIP ? 0 : 1;

		for (unsigned int i = 0; i < 4; i++)
			len += at(4 * i + 4) <= end;
		window.end = end;
		expect(end == at(16) ? MT_STOP_END : MT_STOP_TRUNCATED, len);
	}
}
END_TEST

/* A register that was saved above the end is missed where it is needed, and not before. */
START_TEST(saved_above_the_end)
{
	start_with(ret(LOSES_RBP), 0x10, at(2));
	put(at(0), ret(BY_RBP));
	expect(MT_STOP_BAD, 2);

	start_with(ret(BY_RBX), 0, at(4));
	put(at(5), ret(BY_RBX));
	put(at(4), window.end);
	expect(MT_STOP_TRUNCATED, 2);
	put(at(4), STACK - 64);
	expect(MT_STOP_BAD, 2);

	start_with(ret(REALIGNED), window.end + 8, 0);
	expect(MT_STOP_TRUNCATED, 1);
	start_with(ret(BY_RBP), window.end, 0);
	expect(MT_STOP_TRUNCATED, 1);
}
END_TEST

/* The last instruction of a function is a call: its return address is the next function's. */
START_TEST(call_at_the_end)
{
	start_with(BIAS + FRAME, 0, 0);
	put(at(0), BIAS + BY_RBX); /* OUTERMOST's end */
	expect(MT_STOP_END, 2);
	ck_assert_uint_eq(trace->frames[0].offset, FRAME);
	ck_assert_uint_eq(trace->frames[0].exact, 0);
}
END_TEST

START_TEST(frame_pointer_is_followed)
{
	start_with(ret(NO_CFI), at(4), 0);
	put(at(4), at(8));
	put(at(5), ret(NO_CFI));
	put(at(8), at(12));
	put(at(9), ret(NO_MODULE));
	put(at(12), at(16));
	put(at(13), ret(FRAME));
	put(at(17), ret(OUTERMOST));
	/* The frame in no module is not believed on the way from one that is. */
	expect(MT_STOP_NO_CFI, 2);
	put(at(9), ret(LEAF));
	put(at(10), ret(FRAME));
	put(at(14), ret(OUTERMOST));
	expect(MT_STOP_END, 5);

	/* From no module into one. */
	start_with(ret(NO_MODULE), at(4), 0);
	put(at(5), ret(OUTERMOST));
	expect(MT_STOP_END, 2);
}
END_TEST

START_TEST(frame_pointer_is_refused)
{
	static const struct {
		int64_t rbp; /* in words from at(0) */
		uint64_t pc;
		enum mt_stop stop;
		size_t len;
	} cases[] = {
		{ 0, OUTERMOST + 0x10, MT_STOP_END, 2 }, /* just good */
		{ -1, 0, MT_STOP_NO_CFI, 1 },
		{ 4, 0, MT_STOP_NO_CFI, 1 },
		{ 4, ELF_TEXT, MT_STOP_NO_CFI, 1 }, /* the byte before is not code */
		{ 4, ELF_TEXT_END + 1, MT_STOP_NO_CFI, 1 },
		{ 4, ELF_TEXT_END, MT_STOP_NO_CFI, 2 }, /* good; no row there */
		{ WORDS, 0, MT_STOP_TRUNCATED, 1 },
		{ MT_FRAME_POINTER_BYTES / 8, 0, MT_STOP_TRUNCATED, 1 },
		{ MT_FRAME_POINTER_BYTES / 8 + 1, 0, MT_STOP_NO_CFI, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rbp = at(0) + (uint64_t)(8 * cases[i].rbp);

		start_with(ret(NO_CFI), rbp, 0);
		if (cases[i].pc) {
			put(rbp, 8);
			put(rbp + 8, BIAS + cases[i].pc);
		}
		expect(cases[i].stop, cases[i].len);
	}
	start_with(ret(NO_CFI), at(4) + 4, 0);
	expect(MT_STOP_NO_CFI, 1);
	/* The stack's own end: what lies above it is no frame. */
	window.bottom = true;
	start_with(ret(NO_CFI), window.end, 0);
	expect(MT_STOP_NO_CFI, 1);
}
END_TEST

/* An rbp of 0 is an end mark where it is one, and chance elsewhere. */
START_TEST(frame_pointer_zero)
{
	start_with(ret(NO_CFI), 0, 0);
	expect(MT_STOP_NO_CFI, 1);
	start_with(ret(NO_CFI), at(4), 0);
	put(at(4), 0);
	put(at(5), ret(NO_CFI));
	expect(MT_STOP_END, 2);
	/* A return address of 0 in a chain of frame pointers. */
	put(at(4), at(8));
	put(at(8), at(12));
	put(at(9), 0);
	expect(MT_STOP_END, 2);

	/* ld.so's entry code: the bottom of the stack, with nothing left on it. */
	for (unsigned int left = 0; left < 5; left++) {
		for (int bottom = 0; bottom < 2; bottom++) {
			window.end = at(left);
			window.bottom = bottom;
			start_with(ret(NO_CFI), 0, 0);
			expect(bottom && left <= 2 ? MT_STOP_END : MT_STOP_NO_CFI, 1);
		}
	}
}
END_TEST

START_TEST(signal_frame)
{
	start_with(ret(LEAF), at(30), at(20));
	put(at(0), ret(SIGNAL));
	/* rsp is at(1) in SIGNAL: [rsp] is the interrupted pc, [rsp + 8] its rsp. */
	put(at(1), BIAS + FRAME);
	put(at(2), at(8));
	put(at(11), ret(BY_RBX));
	put(at(10), at(30));
	put(at(21), ret(OUTERMOST));
	expect(MT_STOP_END, 5);
	ck_assert_uint_eq(trace->frames[1].exact, 0);
	ck_assert_uint_eq(trace->frames[2].offset, FRAME);
	ck_assert_uint_eq(trace->frames[2].exact, 1);
	ck_assert_uint_eq(trace->frames[3].exact, 0);

	/* The interrupted code's stack may be lower, */
	window.start -= 8 * 4;
	put(at(0), ret(SIGNAL));
	put(at(1), BIAS + LEAF);
	put(at(2), window.start + 8 * MT_SAVED_R15);
	start_with(ret(LEAF), 0, 0);
	put(window.start + 8 * MT_SAVED_R15, ret(OUTERMOST));
	expect(MT_STOP_END, 4);
	/* or elsewhere: then the chain has that frame, and ends. */
	put(at(2), window.start - 8);
	expect(MT_STOP_TRUNCATED, 3);
	put(at(2), window.end);
	expect(MT_STOP_TRUNCATED, 3);
	put(at(2), 0);
	expect(MT_STOP_TRUNCATED, 3);
	/* A jump to nowhere is no end. */
	put(at(1), 0);
	put(at(2), at(8));
	expect(MT_STOP_NO_MODULE, 3);
}
END_TEST

/* Signal frames can go round; nothing else can. */
START_TEST(for_ever)
{
	start_with(ret(SIGNAL), 0, 0);
	put(at(0), BIAS + SIGNAL);
	put(at(1), at(0));
	expect(MT_STOP_DEPTH, MT_TRACE_FRAMES);
}
END_TEST

static uint32_t node_of(void)
{
	uint32_t node;

	ck_assert_int_eq(mt_unwind(unwinder, &space, &window, &tree, &node), 0);
	return node;
}

START_TEST(nodes)
{
	const struct mt_call_node *node;
	uint32_t id, before;

	start_with(ret(FRAME), 0, 0);
	put(at(3), ret(OUTERMOST));
	id = node_of();
	ck_assert_uint_eq(node_of(), id);
	node = mt_call_tree_node(&tree, id);
	ck_assert_uint_eq(node->frame.offset, FRAME + 0x10);
	ck_assert_uint_eq(node->frame.module, 5);
	node = mt_call_tree_node(&tree, node->parent);
	ck_assert_uint_eq(node->frame.offset, OUTERMOST + 0x10);
	ck_assert_uint_eq(node->parent, MT_STOP_END);

	/* The same frame under another root is another node. */
	window.end = at(3);
	before = node_of();
	ck_assert_uint_ne(before, id);
	ck_assert_uint_eq(mt_call_tree_node(&tree, before)->parent, MT_STOP_TRUNCATED);

	/* A chain without a frame is a root. */
	window.end = at(0) - 16;
	ck_assert_uint_eq(node_of(), MT_STOP_TRUNCATED);
}
END_TEST

/* What is remembered of an address goes with the space's stamp. */
START_TEST(spaces_change)
{
	struct mt_space_range range = { .start = BIAS, .end = BIAS + 0x6000, .bias = BIAS };
	struct mt_space child;

	start_with(ret(FRAME), 0, 0);
	put(at(3), ret(OUTERMOST));
	expect(MT_STOP_END, 2);
	mt_space_init(&child);
	ck_assert_int_eq(mt_space_copy(&child, &space), 0);
	mt_space_clear(&space);
	range.start = BIAS + OUTERMOST;
	range.image = image;
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	expect(MT_STOP_NO_MODULE, 1);
	ck_assert_int_eq(mt_unwind_trace(unwinder, &child, &window, &trace), 0);
	ck_assert_uint_eq(trace->stop, MT_STOP_END);
	/* The same code, one function lower, as another module. */
	range.start = BIAS;
	range.bias = BIAS - 0x40;
	range.module = 9;
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	put(at(0), 0);
	put(at(1), 0);
	put(at(2), 0);
	start_with(ret(LEAF), at(8), 0);
	put(at(3), ret(REALIGNED));
	expect(MT_STOP_END, 2);
	ck_assert_uint_eq(trace->frames[0].module, 9);
	ck_assert_uint_eq(trace->frames[0].offset, FRAME + 0x10);
	/* Without an image, there is no row. */
	range.image = NULL;
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
	start_with(ret(LEAF), 0, 0);
	expect(MT_STOP_NO_CFI, 1);
	mt_space_done(&child);
}
END_TEST

/* Stacks of likely and unlikely words: both evaluators agree, and read nothing else. */
START_TEST(any_words)
{
	static const uint64_t functions[] = {
		LEAF,	OUTERMOST, FRAME,	BY_RBP,	 REALIGNED, BY_RBX, MALFORMED, SIGNAL,
		NO_CFI, LOSES_RBP, IN_REGISTER, NO_RULE, BY_VALUES, NO_CFA, SAME_RIP,  NO_MODULE,
	};
	unsigned int stops[_MT_STOP_MAX] = { 0 };

	srandom((unsigned int)_i);
	for (int round = 0; round < 20000; round++) {
		window.start = STACK + 8 * ((uint64_t)random() % WORDS);
		window.end = window.start + 8 * ((uint64_t)random() % (WORDS + 1));
		window.bottom = random() % 2;
		for (int i = 0; i < WORDS; i++) {
			int kind = (int)(random() % 16);

			words[i] = kind < 7    ? ret(functions[random() % 16])
				   : kind < 13 ? window.start + 8 * ((uint64_t)random() % WORDS)
				   : kind < 14 ? (uint64_t)random()
					       : 0;
		}
		start_with(ret(functions[random() % 16]), at((unsigned int)random() % WORDS),
			   at((unsigned int)random() % WORDS));
		unwind();
		stops[trace->stop]++;
	}
	ck_assert_uint_gt(stops[MT_STOP_END], 0);
	ck_assert_uint_gt(stops[MT_STOP_TRUNCATED], 0);
	ck_assert_uint_gt(stops[MT_STOP_NO_CFI], 0);
	ck_assert_uint_gt(stops[MT_STOP_NO_MODULE], 0);
	ck_assert_uint_gt(stops[MT_STOP_BAD], 0);
	ck_assert_uint_eq(stops[MT_STOP_NONE], 0);
}
END_TEST

#define KEPT 8

/* A stack: where its frames are, their return addresses, and where their rbp is saved. */
static struct stack {
	struct mt_window window;
	uint64_t words[WORDS];
	uint64_t sp[WORDS], pc[WORDS], rbp_at[WORDS];
	unsigned int n;
} stack, kept[KEPT];

static uint64_t any_function(void)
{
	static const uint64_t functions[] = {
		LEAF, FRAME, BY_RBP, REALIGNED, OUTERMOST, LOSES_RBP, NO_CFI, BY_RBX, NO_MODULE,
	};

	return ret(functions[random() % 9]);
}

static uint64_t any_word(void)
{
	switch (random() % 4) {
	case 0:
		return any_function();
	case 1:
		return STACK + 8 * ((uint64_t)random() % WORDS);
	case 2:
		return (uint64_t)random();
	default:
		return 0;
	}
}

static void put_if(uint64_t address, uint64_t word)
{
	if (address - STACK < 8 * WORDS)
		words[(address / 8) & window.mask] = word;
}

/* A frame of the function at sp, whose rbp is at rbp_at; returns its caller's sp. */
static uint64_t lay_frame(uint64_t function, uint64_t sp, uint64_t *rbp_at)
{
	uint64_t rbp = sp + 8 * ((uint64_t)random() % 3 + 1);

	switch (function) {
	case FRAME:
		*rbp_at = sp + 16;
		return sp + 32;
	case REALIGNED:
		put_if(*rbp_at, rbp);
		put_if(rbp - 8, rbp + 24);
		*rbp_at = rbp;
		return rbp + 24;
	case BY_RBP:
	case NO_CFI:
	case NO_MODULE:
		put_if(*rbp_at, rbp);
		*rbp_at = rbp;
		return rbp + 16;
	default:
		return sp + 8;
	}
}

/* Lays frames from the window's start up to the i-th of those that are there. */
static void lay_frames(unsigned int i)
{
	const struct stack old = stack;
	static const uint64_t functions[] = { LEAF,	 FRAME,	 FRAME,	    LEAF,  BY_RBP,
					      REALIGNED, NO_CFI, LOSES_RBP, BY_RBX };
	uint64_t rbp_at = window.start + 8 * MT_SAVED_RBP, ra = window.start + 8 * MT_SAVED_RIP;
	uint64_t where = i < old.n ? old.sp[i] : window.end, sp = at(0);
	uint64_t rbp = i < old.n ? words[(old.rbp_at[i] / 8) & window.mask] : 0;

	stack.n = 0;
	while (sp < where) {
		uint64_t function = functions[random() % (random() % 64 ? 7 : 9)];

		if (where - sp <= 40)
			function = LEAF;
		put_if(ra, ret(function));
		stack.sp[stack.n] = sp;
		stack.pc[stack.n] = ret(function);
		stack.rbp_at[stack.n++] = rbp_at;
		sp = lay_frame(function, sp, &rbp_at);
		ra = sp - 8;
	}
	put_if(ra, i < old.n ? old.pc[i] : ret(OUTERMOST));
	put_if(rbp_at, rbp);
	for (; i < old.n && stack.n < WORDS; i++, stack.n++) {
		stack.sp[stack.n] = old.sp[i];
		stack.pc[stack.n] = old.pc[i];
		stack.rbp_at[stack.n] = old.rbp_at[i];
	}
}

/* Back to a stack that was, or on to another one. */
static void vary(void)
{
	if (random() % 4 == 0)
		stack = kept[random() % KEPT];
	window = stack.window;
	memcpy(words, stack.words, sizeof(words));
	if (random() % 8 == 0)
		window.start = STACK + 8 * ((uint64_t)random() % 8);
	if (random() % 64 == 0)
		window.end = STACK + 8 * (WORDS - (uint64_t)random() % 3);
	if (random() % 64 == 0)
		window.bottom = !window.bottom;
	if (random() % 64 == 0 || !stack.n)
		lay_frames(WORDS);
	else if (random() % 2)
		lay_frames((unsigned int)random() % stack.n);
	for (long n = random() % 3 - 1; n > 0; n--)
		words[random() % WORDS] = any_word();
	stack.window = window;
	memcpy(stack.words, words, sizeof(words));
	kept[random() % KEPT] = stack;
}

static void change_space(void)
{
	struct mt_space_range range = {
		.start = BIAS, .end = BIAS + 0x6000, .bias = BIAS, .image = image
	};

	range.module = (uint32_t)random() % 3;
	if (random() % 2) {
		/* All but FRAME. */
		mt_space_clear(&space);
		range.end = BIAS + FRAME;
		ck_assert_int_eq(mt_space_add(&space, &range), 0);
		range.start = BIAS + BY_RBP;
		range.end = BIAS + 0x6000;
	}
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
}

/* The node of the chain that is found without a memory. */
static uint32_t node_of_trace(void)
{
	uint32_t node;

	ck_assert_int_eq(mt_unwind_trace(unwinder, &space, &window, &trace), 0);
	node = trace->stop;
	for (size_t i = trace->len; i-- > 0;)
		ck_assert_int_eq(mt_call_tree_child(&tree, node, &trace->frames[i], &node), 0);
	return node;
}

/* What is remembered is what would be found; whatever changed in between. */
START_TEST(remembered)
{
	enum { ROUNDS = 50000 };
	struct mt_unwinder_counts counts;

	srandom((unsigned int)_i);
	stack = (struct stack){ .window = window };
	for (int i = 0; i < KEPT; i++)
		kept[i] = stack;
	for (int round = 0; round < ROUNDS; round++) {
		vary();
		if (random() % 256 == 0)
			change_space();
		ck_assert_uint_eq(node_of(), node_of_trace());
	}
	mt_unwinder_counts(unwinder, &counts);
	ck_assert_uint_gt(counts.found, ROUNDS / 20);
	ck_assert_uint_gt(counts.joined, ROUNDS / 20);
	ck_assert_uint_gt(counts.walked, ROUNDS / 20);
	ck_assert_uint_gt(counts.full, ROUNDS / 100);
}
END_TEST

/* A word that one window has and another, which begins above it, has not. */
START_TEST(remembered_from_below)
{
	static const unsigned int starts[][2] = { { 0, 8 }, { 8, 0 } };
	struct mt_space_range range = {
		.start = BIAS, .end = BIAS + 0x6000, .bias = BIAS, .image = image
	};

	for (unsigned int i = 10; i < 15; i++)
		put(STACK + 8 * i, ret(LEAF));
	put(STACK + 8 * 6, ret(FRAME)); /* its rbp is where the other window's is saved */
	put(STACK + 8 * 9, STACK + 8 * 4);
	put(STACK + 8 * 15, ret(REALIGNED));
	put(STACK + 8 * 3, STACK + 8 * 30);
	put(STACK + 8 * 29, ret(OUTERMOST));
	for (size_t i = 0; i < 4; i++) {
		window.start = STACK + 8 * starts[i / 2][i % 2];
		ck_assert_uint_eq(node_of(), node_of_trace());
		ck_assert_uint_eq(trace->stop, starts[i / 2][i % 2] ? MT_STOP_BAD : MT_STOP_END);
		if (i % 2)
			ck_assert_int_eq(mt_space_add(&space, &range), 0);
	}
}
END_TEST

/* More ends than what is kept by the end has places. */
START_TEST(remembered_by_end)
{
	struct mt_space_range range = {
		.start = BIAS, .end = BIAS + 0x6000, .bias = BIAS, .image = image
	};

	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = ret(LEAF);
	for (int round = 0; round < 200; round++) {
		for (unsigned int i = MT_SAVED_WORDS; i <= WORDS; i++) {
			window.end = STACK + 8 * (MT_SAVED_WORDS + i * 19 % (WORDS - 6));
			ck_assert_uint_eq(node_of(), node_of_trace());
		}
		if (round % 2)
			ck_assert_int_eq(mt_space_add(&space, &range), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwind");
	TCase *tcase = tcase_create("unwind");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, through_each_kind);
	tcase_add_test(tcase, through_values);
	tcase_add_test(tcase, place_does_not_matter);
	tcase_add_test(tcase, each_end);
	tcase_add_test(tcase, cut_at_each_word);
	tcase_add_test(tcase, saved_above_the_end);
	tcase_add_test(tcase, call_at_the_end);
	tcase_add_test(tcase, frame_pointer_is_followed);
	tcase_add_test(tcase, frame_pointer_is_refused);
	tcase_add_test(tcase, frame_pointer_zero);
	tcase_add_test(tcase, signal_frame);
	tcase_add_test(tcase, for_ever);
	tcase_add_test(tcase, nodes);
	tcase_add_test(tcase, spaces_change);
	tcase_add_loop_test(tcase, any_words, 0, 4);
	tcase_add_loop_test(tcase, remembered, 0, 8);
	tcase_add_test(tcase, remembered_from_below);
	tcase_add_test(tcase, remembered_by_end);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
