/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_frame_pointer.c - collector/frame_pointer.h, and both unwinders, where what looks like
 * a frame is none: what lies at its return address was not called
 *
 * tests/unit/test_unwind.c has what does not depend on the code's bytes.
 */
#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "collector/frame_pointer.h"
#include "collector/unwind.h"
#include "tests/cfi_bytes.h"
#include "wire/reference.h"

#define BIAS 0x100000
#define STACK 0x7fff00001000
#define WORDS 64
#define TEXT_BYTES 0x400

/* ELF addresses that are returned to. */
enum {
	LEAF = 0x1010,	    /* its function's cfa = rsp + 8 */
	OUTERMOST = 0x1050, /* no caller */
	SIGNAL = 0x1090,    /* a handler's: the CFA is *(rsp + 8), rip at [rsp] */
	NO_CFI = 0x1200,
};

static struct cfi_bytes eh_frame, file;
static uint8_t text[TEXT_BYTES];
static struct mt_image *image;
static struct mt_space space;
static struct mt_unwinder *unwinder;
static struct mt_unwind_full full;
static uint64_t words[WORDS];
static const struct mt_window window = {
	.start = STACK,
	.end = STACK + 8 * WORDS,
	.words = words,
	.mask = WORDS - 1,
};
static const struct mt_trace *trace;

/* Code of nops, but for calls in front of OUTERMOST and NO_CFI. */
static void setup(void)
{
	size_t cie;

	memset(text, 0x90, sizeof(text));
	memcpy(text + OUTERMOST - ELF_TEXT - 2, "\xff\xd0", 2);
	memcpy(text + NO_CFI - ELF_TEXT - 2, "\xff\xd0", 2);
	eh_frame = (struct cfi_bytes){ .vaddr = ELF_EH_FRAME };
	cie = cfi_put_cie(&eh_frame, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&eh_frame, cie, 0x1b, LEAF - 0x10, 0x40, "", 0);
	cfi_put_fde(&eh_frame, cie, 0x1b, OUTERMOST - 0x10, 0x40, "\x07\x10", 2);
	cie = cfi_put_cie(&eh_frame, "zRS", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&eh_frame, cie, 0x1b, SIGNAL - 0x10, 0x40,
		    "\x0f\x03\x77\x08\x06\x10\x10\x02\x77\x00", 10);
	mt_space_init(&space);
	ck_assert_int_eq(mt_unwinder_new(&unwinder), 0);
	memset(words, 0, sizeof(words));
}

static void teardown(void)
{
	mt_unwind_full_done(&full);
	mt_unwinder_free(unwinder);
	mt_space_done(&space);
	mt_image_unref(image);
	image = NULL;
}

/* The code, of which the file has so many bytes. */
static void map_code(size_t text_len)
{
	struct mt_space_range range = { .start = BIAS, .end = BIAS + 0x6000, .bias = BIAS };
	struct elf_parts parts = {
		.eh_frame = &eh_frame,
		.with_sections = true,
		.text = text,
		.text_len = text_len,
	};

	elf_put(&file, &parts);
	mt_image_unref(image);
	ck_assert_int_eq(mt_image_new_memory(file.bytes, file.len, &image), 0);
	range.image = image;
	ck_assert_int_eq(mt_space_add(&space, &range), 0);
}

/* The address of the i-th word behind the saved ones. */
static uint64_t at(unsigned int i)
{
	return STACK + 8 * (MT_SAVED_WORDS + i);
}

static void put(uint64_t address, uint64_t word)
{
	ck_assert_uint_lt(address - STACK, 8 * WORDS);
	words[(address / 8) & window.mask] = word;
}

/* Both unwinders, from the frame that is returned to at pc. */
static void expect(uint64_t pc, uint64_t rbp, enum mt_stop stop, size_t len)
{
	static struct mt_trace slow;

	put(STACK + 8 * MT_SAVED_RIP, pc);
	put(STACK + 8 * MT_SAVED_RBP, rbp);
	ck_assert_int_eq(mt_unwind_trace(unwinder, &space, &window, &trace), 0);
	ck_assert_uint_eq(trace->stop, stop);
	ck_assert_uint_eq(trace->len, len);
	ck_assert_int_eq(mt_unwind_full(&full, &space, &window, &slow), 0);
	ck_assert_uint_eq(slow.stop, stop);
	ck_assert_uint_eq(slow.len, len);
}

START_TEST(wants_a_call)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool is_call;
	} cases[] = {
		{ "", 0, false },
		{ "\xe8\x10\x00\x00\x00", 5, true },
		{ "\xe8\x10\x00\x00\x00\x90", 6, false },
		{ "\xe8\x10\x00\x00\x10", 5, false }, /* goes out of the module's code */
		{ "\xff\xd0", 2, true },
		{ "\xff\xe0", 2, false },
		{ "\xff\x94\xe8\x10\x00\x00\x10", 7, true }, /* one in another */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_call = cases[i].is_call;
		size_t len = is_call ? 3 : 1;

		memset(text, 0x90, LEAF - ELF_TEXT);
		memcpy(text + LEAF - ELF_TEXT - cases[i].len, cases[i].bytes, cases[i].len);
		map_code(sizeof(text));
		put(at(4), at(8));
		put(at(5), BIAS + LEAF);
		put(at(6), BIAS + OUTERMOST);
		/* Twice: known the second time. */
		for (int j = 0; j < 2; j++)
			expect(BIAS + NO_CFI, at(4), is_call ? MT_STOP_END : MT_STOP_NO_CFI, len);
		expect(0x10000000, at(4), is_call ? MT_STOP_END : MT_STOP_NO_MODULE, len);
		/* Where there is unwind information nobody asks. */
		put(at(0), BIAS + OUTERMOST);
		expect(BIAS + LEAF, 0, MT_STOP_END, 2);
	}
}
END_TEST

/* Links upwards, and with each an address in code. */
START_TEST(bait)
{
	map_code(sizeof(text));
	for (unsigned int i = 4; i < 20; i += 2) {
		put(at(i), at(i + 2));
		put(at(i + 1), BIAS + LEAF);
	}
	expect(BIAS + NO_CFI, at(4), MT_STOP_NO_CFI, 1);
	/* Behind a frame that is one. */
	put(at(5), BIAS + NO_CFI);
	put(at(7), BIAS + NO_CFI);
	expect(BIAS + NO_CFI, at(4), MT_STOP_NO_CFI, 3);
}
END_TEST

/* A handler was called by nobody: where it returns to, the kernel has put. */
START_TEST(of_a_handler)
{
	map_code(sizeof(text));
	put(at(5), BIAS + SIGNAL);
	put(at(6), BIAS + LEAF);
	put(at(7), at(8));
	put(at(8), BIAS + OUTERMOST);
	expect(BIAS + NO_CFI, at(4), MT_STOP_END, 4);
	ck_assert_uint_eq(trace->frames[2].exact, 1);
}
END_TEST

/* Of a module that is known, its executable segments; of others, all. */
START_TEST(without_bytes)
{
	struct mt_space_range other = { .start = 0x200000, .end = 0x201000, .module = 2 };

	map_code(0);
	ck_assert_int_eq(mt_space_add(&space, &other), 0);
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT));
	ck_assert(mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + 1));
	ck_assert(mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT_END));
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT_END + 1));
	ck_assert(mt_frame_pointer_is_return(&space, 0x201000));
	ck_assert(!mt_frame_pointer_is_return(&space, 0x201001));
	ck_assert(!mt_frame_pointer_is_return(&space, 0));
}
END_TEST

START_TEST(at_the_edges)
{
	struct mt_space_range other = { .start = BIAS, .end = BIAS + 0x6000, .bias = BIAS };

	memcpy(text, "\xff\xd0", 2);
	map_code(sizeof(text));
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT));
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + 1));
	ck_assert(mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + 2));
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + 3));
	ck_assert(!mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + TEXT_BYTES));
	/* Behind what the file has. */
	ck_assert(mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + TEXT_BYTES + 1));

	((Elf64_Ehdr *)file.bytes)->e_machine = EM_AARCH64;
	ck_assert_int_eq(mt_image_new_memory(file.bytes, file.len, &other.image), 0);
	ck_assert_int_eq(mt_space_add(&space, &other), 0);
	mt_image_unref(other.image);
	ck_assert(mt_frame_pointer_is_return(&space, BIAS + ELF_TEXT + 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frame_pointer");
	TCase *tcase = tcase_create("frame_pointer");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, wants_a_call);
	tcase_add_test(tcase, bait);
	tcase_add_test(tcase, of_a_handler);
	tcase_add_test(tcase, without_bytes);
	tcase_add_test(tcase, at_the_edges);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
