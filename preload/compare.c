/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * compare.c - see compare.h
 *
 * Invariants
 *   - AVX2 is used where the processor has it and the kernel keeps its registers.
 */
#include "preload/compare.h"

#include <cpuid.h>
#include <stdbool.h>

#include "preload/image.h"

/* XCR0: the kernel keeps SSE's and AVX's registers. */
#define XCR0_AVX 6

static const struct mt_compare portable = { mt_groups_differ, mt_words_of_group_differ,
					    mt_copy_words };
static const struct mt_compare sse2 = { mt_groups_differ_sse2, mt_words_differ_sse2,
					mt_copy_words_sse2 };
static const struct mt_compare avx2 = { mt_groups_differ_avx2, mt_words_differ_avx2,
					mt_copy_words_avx2 };

static const struct mt_compare *chosen = &portable;
static uint64_t loader_start, loader_bytes;

static bool has_avx2(void)
{
	uint32_t a, b, c, d, xcr0_low, xcr0_high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(xcr0_low), "=d"(xcr0_high) : "c"(0));
	return (xcr0_low & XCR0_AVX) == XCR0_AVX && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       b & bit_AVX2;
}

void mt_compare_choose(void)
{
	struct mt_image loader;

	/* Without knowing where the loader is, its calls can not be told. */
	if (!mt_image_loader(&loader))
		return;
	loader_start = loader.start;
	loader_bytes = loader.end - loader.start;
	chosen = has_avx2() ? &avx2 : &sse2;
}

const struct mt_compare *mt_compare_for(uint64_t caller)
{
	return caller - loader_start < loader_bytes ? &portable : chosen;
}
