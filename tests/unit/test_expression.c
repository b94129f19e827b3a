/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_expression.c - collector/expression.h, operation by operation and at its bounds
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "collector/expression.h"
#include "tests/cfi_bytes.h"

static const uint64_t words[4] = { 0x1122334455667788, 0x2000, 0x8877665544332211, 3 };

static const struct mt_window window = {
	.start = 0x1000,
	.end = 0x1020,
	.words = words,
	.mask = 3,
};

static const struct mt_registers regs = {
	.value = { [MT_REG_RBX] = 0x10, [MT_REG_RSP] = 0x1000, [MT_REG_RIP] = 0x40102b },
	.known = 1 << MT_REG_RBX | 1 << MT_REG_RSP | 1 << MT_REG_RIP,
	.above = 1 << MT_REG_R12,
};

static enum mt_stop evaluate(const void *bytes, size_t len, uint64_t *ret)
{
	return mt_expression_evaluate(cfi_at_page_end(bytes, len), len, &window, &regs, NULL, ret);
}

/* The value 42 stands for "whatever was there": not written. */
static const struct {
	const char *bytes;
	size_t len;
	enum mt_stop stop;
	uint64_t value;
} cases[] = {
	{ "\x30", 1, MT_STOP_NONE, 0 }, /* lit0 */
	{ "\x4f", 1, MT_STOP_NONE, 31 },
	{ "\x08\xff", 2, MT_STOP_NONE, 0xff }, /* const1u to const8s */
	{ "\x09\xff", 2, MT_STOP_NONE, UINT64_MAX },
	{ "\x0a\xfe\xff", 3, MT_STOP_NONE, 0xfffe },
	{ "\x0b\xfe\xff", 3, MT_STOP_NONE, (uint64_t)-2 },
	{ "\x0c\xfe\xff\xff\xff", 5, MT_STOP_NONE, 0xfffffffe },
	{ "\x0d\xfe\xff\xff\xff", 5, MT_STOP_NONE, (uint64_t)-2 },
	{ "\x0e\x08\x07\x06\x05\x04\x03\x02\x01", 9, MT_STOP_NONE, 0x0102030405060708 },
	{ "\x0f\xff\xff\xff\xff\xff\xff\xff\xff", 9, MT_STOP_NONE, UINT64_MAX },
	{ "\x10\xe5\x8e\x26", 4, MT_STOP_NONE, 624485 }, /* constu */
	{ "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, MT_STOP_NONE, UINT64_MAX },
	{ "\x11\x80\x7f", 3, MT_STOP_NONE, (uint64_t)-128 }, /* consts */
	{ "\x11\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 11, MT_STOP_NONE, 1ULL << 63 },
	{ "\x11\x80\x80\x80\x80\x80\x80\x80\x80\x40", 10, MT_STOP_NONE, 3ULL << 62 },
	{ "\x73\x08", 2, MT_STOP_NONE, 0x18 },		/* breg3 */
	{ "\x92\x03\x78", 3, MT_STOP_NONE, 8 },		/* bregx */
	{ "\x31\x32\x12\x22", 4, MT_STOP_NONE, 4 },	/* dup plus */
	{ "\x31\x32\x13", 3, MT_STOP_NONE, 1 },		/* drop */
	{ "\x31\x32\x14", 3, MT_STOP_NONE, 1 },		/* over */
	{ "\x31\x32\x33\x15\x02", 5, MT_STOP_NONE, 1 }, /* pick */
	{ "\x31\x32\x16", 3, MT_STOP_NONE, 1 },		/* swap */
	{ "\x31\x32\x33\x17", 4, MT_STOP_NONE, 2 },	/* rot */
	{ "\x31\x32\x33\x17\x13", 5, MT_STOP_NONE, 1 },
	{ "\x31\x32\x33\x17\x13\x13", 6, MT_STOP_NONE, 3 },
	{ "\x09\xfb\x19", 3, MT_STOP_NONE, 5 }, /* abs */
	{ "\x35\x19", 2, MT_STOP_NONE, 5 },
	{ "\x3c\x3a\x1a", 3, MT_STOP_NONE, 8 },		       /* and */
	{ "\x09\xf9\x32\x1b", 4, MT_STOP_NONE, (uint64_t)-3 }, /* div */
	{ "\x0f\0\0\0\0\0\0\0\x80\x09\xff\x1b", 12, MT_STOP_NONE, 1ULL << 63 },
	{ "\x31\x30\x1b", 3, MT_STOP_BAD, 42 },
	{ "\x35\x33\x1c", 3, MT_STOP_NONE, 2 }, /* minus */
	{ "\x37\x33\x1d", 3, MT_STOP_NONE, 1 }, /* mod */
	{ "\x37\x30\x1d", 3, MT_STOP_BAD, 42 },
	{ "\x37\x33\x1e", 3, MT_STOP_NONE, 21 },      /* mul */
	{ "\x31\x1f", 2, MT_STOP_NONE, UINT64_MAX },  /* neg */
	{ "\x30\x20", 2, MT_STOP_NONE, UINT64_MAX },  /* not */
	{ "\x3c\x3a\x21", 3, MT_STOP_NONE, 14 },      /* or */
	{ "\x37\x33\x22", 3, MT_STOP_NONE, 10 },      /* plus */
	{ "\x31\x23\x80\x01", 4, MT_STOP_NONE, 129 }, /* plus_uconst */
	{ "\x31\x34\x24", 3, MT_STOP_NONE, 16 },      /* shl */
	{ "\x31\x08\x40\x24", 4, MT_STOP_NONE, 0 },
	{ "\x09\xf0\x32\x25", 4, MT_STOP_NONE, 0x3ffffffffffffffc }, /* shr */
	{ "\x31\x09\xff\x25", 4, MT_STOP_NONE, 0 },
	{ "\x09\xf0\x32\x26", 4, MT_STOP_NONE, (uint64_t)-4 }, /* shra */
	{ "\x09\xf0\x08\x40\x26", 5, MT_STOP_NONE, UINT64_MAX },
	{ "\x3c\x3a\x27", 3, MT_STOP_NONE, 6 }, /* xor */
	{ "\x31\x31\x29", 3, MT_STOP_NONE, 1 }, /* eq to ne, signed */
	{ "\x31\x09\xff\x2a", 4, MT_STOP_NONE, 1 },
	{ "\x31\x31\x2b", 3, MT_STOP_NONE, 0 },
	{ "\x31\x31\x2c", 3, MT_STOP_NONE, 1 },
	{ "\x31\x09\xff\x2d", 4, MT_STOP_NONE, 0 },
	{ "\x31\x32\x2e", 3, MT_STOP_NONE, 1 },
	{ "\x31\x2f\x01\x00\x30\x37\x22", 7, MT_STOP_NONE, 8 },	    /* skip */
	{ "\x31\x35\x28\x01\x00\x30\x37\x22", 8, MT_STOP_NONE, 8 }, /* bra, taken */
	{ "\x31\x30\x28\x01\x00\x32\x22", 7, MT_STOP_NONE, 3 },	    /* not taken */
	{ "\x31\x96", 2, MT_STOP_NONE, 1 },			    /* nop */
	{ "\x31\x2f\x00\x00", 4, MT_STOP_NONE, 1 },		    /* skip to the end */
	{ "\x31\x2f\x01\x00", 4, MT_STOP_BAD, 42 },		    /* behind it */
	{ "\x31\x2f\xfb\xff", 4, MT_STOP_BAD, 42 },		    /* before the start */
	{ "\x31\x2f\xfd\xff", 4, MT_STOP_BAD, 42 },		    /* for ever */
	{ "\x77\x00\x06", 3, MT_STOP_NONE, 0x1122334455667788 },    /* deref */
	{ "\x77\x18\x06", 3, MT_STOP_NONE, 3 },
	{ "\x77\x20\x06", 3, MT_STOP_TRUNCATED, 42 },		     /* above the window */
	{ "\x77\x78\x06", 3, MT_STOP_BAD, 42 },			     /* below it */
	{ "\x77\x01\x06", 3, MT_STOP_BAD, 42 },			     /* not aligned */
	{ "\x77\x00\x94\x08", 4, MT_STOP_NONE, 0x1122334455667788 }, /* deref_size */
	{ "\x77\x04\x94\x04", 4, MT_STOP_NONE, 0x11223344 },
	{ "\x77\x02\x94\x02", 4, MT_STOP_NONE, 0x5566 },
	{ "\x77\x07\x94\x01", 4, MT_STOP_NONE, 0x11 },
	{ "\x77\x02\x94\x04", 4, MT_STOP_BAD, 42 },
	{ "\x77\x00\x94\x03", 4, MT_STOP_BAD, 42 },
	{ "\x77\x00\x94\x00", 4, MT_STOP_BAD, 42 },
	{ "\x7c\x00", 2, MT_STOP_TRUNCATED, 42 }, /* saved above the window */
	{ "\x70\x00", 2, MT_STOP_BAD, 42 },	  /* not known */
	{ "\x81\x00", 2, MT_STOP_BAD, 42 },	  /* not tracked */
	{ "\x92\x80\x80\x04\x00", 5, MT_STOP_BAD, 42 },
	{ "\x03\0\0\0\0\0\0\0\0", 9, MT_STOP_BAD, 42 }, /* addr */
	{ "\x50", 1, MT_STOP_BAD, 42 },			/* reg0 */
	{ "\x9c", 1, MT_STOP_BAD, 42 },			/* call_frame_cfa */
	{ "\x31\x9f", 2, MT_STOP_BAD, 42 },		/* stack_value */
	{ "\x91\x00", 2, MT_STOP_BAD, 42 },		/* fbreg */
	{ "\xff", 1, MT_STOP_BAD, 42 },
	{ "", 0, MT_STOP_BAD, 42 }, /* no value */
	{ "\x22", 1, MT_STOP_BAD, 42 },
	{ "\x31\x22", 2, MT_STOP_BAD, 42 },
	{ "\x31\x17", 2, MT_STOP_BAD, 42 },
	{ "\x31\x15\x01", 3, MT_STOP_BAD, 42 },
	{ "\x12", 1, MT_STOP_BAD, 42 },
	{ "\x06", 1, MT_STOP_BAD, 42 },
	/* A PLT stub of the linker: rsp + 8 + ((rip & 15) >= 11) * 8 */
	{ "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 11, MT_STOP_NONE, 0x1010 },
};

START_TEST(operation)
{
	uint64_t value = 42;

	ck_assert_uint_eq(evaluate(cases[_i].bytes, cases[_i].len, &value), cases[_i].stop);
	ck_assert_uint_eq(value, cases[_i].value);
	/* Cut: whatever it is then, it reads no byte more. */
	for (size_t len = 0; len < cases[_i].len; len++)
		evaluate(cases[_i].bytes, len, &value);
}
END_TEST

START_TEST(initial_value)
{
	uint64_t cfa = 0x2000, value;

	ck_assert_uint_eq(mt_expression_evaluate((const uint8_t *)"\x38\x1c", 2, &window, &regs,
						 &cfa, &value),
			  MT_STOP_NONE);
	ck_assert_uint_eq(value, 0x1ff8);
	ck_assert_uint_eq(
		mt_expression_evaluate((const uint8_t *)"", 0, &window, &regs, &cfa, &value),
		MT_STOP_NONE);
	ck_assert_uint_eq(value, 0x2000);
}
END_TEST

START_TEST(bounds)
{
	char bytes[MT_EXPRESSION_STEPS + 1];
	uint64_t value;

	memset(bytes, 0x31, sizeof(bytes));
	ck_assert_uint_eq(evaluate(bytes, MT_EXPRESSION_STACK, &value), MT_STOP_NONE);
	ck_assert_uint_eq(evaluate(bytes, MT_EXPRESSION_STACK + 1, &value), MT_STOP_BAD);
	memset(bytes + 1, 0x96, sizeof(bytes) - 1);
	ck_assert_uint_eq(evaluate(bytes, MT_EXPRESSION_STEPS, &value), MT_STOP_NONE);
	ck_assert_uint_eq(evaluate(bytes, MT_EXPRESSION_STEPS + 1, &value), MT_STOP_BAD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("expression");
	TCase *tcase = tcase_create("expression");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, operation, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(tcase, initial_value);
	tcase_add_test(tcase, bounds);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
